"""Writes the samples in this directory: text as Python's codecs encode it, and the same text in UTF-8."""

from pathlib import Path

JAPANESE = """# 設定ファイルを読み込む
def 読み込み(パス):
    # ファイルが存在しない場合はエラーを返す。
    return open(パス).read()
吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。
"""
CHINESE_SIMPLIFIED = """# 读取配置文件
# 如果文件不存在，则返回错误信息。
学而时习之，不亦说乎？有朋自远方来，不亦乐乎？人不知而不愠，不亦君子乎？
"""
CHINESE_TRADITIONAL = """# 讀取設定檔案
# 如果檔案不存在，則傳回錯誤訊息。
學而時習之，不亦說乎？有朋自遠方來，不亦樂乎？人不知而不慍，不亦君子乎？
"""
KOREAN = """# 설정 파일을 읽는다
# 파일이 없으면 오류를 돌려준다.
나랏말싸미 듕귁에 달아 문자와로 서르 사맛디 아니할쎄. 모든 국민은 법 앞에 평등하다.
"""
RUSSIAN = """# Читает файл настроек
# Если файла нет, возвращает ошибку.
Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.
"""
POLISH = """# Czyta plik konfiguracyjny
Zażółć gęślą jaźń. Litwo! Ojczyzno moja! Ty jesteś jak zdrowie; ile cię trzeba cenić, ten tylko się dowie, kto cię stracił.
"""
CZECH = """# Načte konfigurační soubor
Příliš žluťoučký kůň úpěl ďábelské ódy. Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv.
"""
GERMAN = """# Liest die Einstellungen für größere Übungen
Falsches Üben von Xylophonmusik quält jeden größeren Zwerg. Die Würde des Menschen ist unantastbar; sie zu schützen ist Verpflichtung.
"""
FRENCH = """# Lit le fichier de réglages
Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience, où que ce soit, à l'évidence.
"""
GREEK = """# Διαβάζει το αρχείο ρυθμίσεων
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.
"""
TURKISH = """# Ayar dosyasını okur
Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.
"""
HEBREW = """# קורא את קובץ ההגדרות
כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון.
"""
ARABIC = """# يقرأ ملف الإعدادات
يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء.
"""
THAI = """# อ่านไฟล์การตั้งค่า
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ
"""
MIXED = "naïve café — 日本語 — Ελληνικά — 😀\nsecond line\n"

SAMPLES = [
    ("shift_jis", JAPANESE), ("euc_jp", JAPANESE), ("gb18030", CHINESE_SIMPLIFIED), ("big5", CHINESE_TRADITIONAL),
    ("euc_kr", KOREAN), ("koi8_r", RUSSIAN), ("cp1251", RUSSIAN), ("iso8859_5", RUSSIAN), ("cp866", RUSSIAN),
    ("cp1250", POLISH), ("iso8859_2", CZECH), ("cp1252", GERMAN), ("latin_1", FRENCH), ("cp1253", GREEK),
    ("iso8859_7", GREEK), ("cp1254", TURKISH), ("cp1255", HEBREW), ("cp1256", ARABIC), ("cp874", THAI),
    ("utf_8", MIXED), ("utf_8_sig", MIXED), ("utf_16", MIXED), ("utf_32", MIXED),
    ("utf_16_le", GERMAN), ("utf_16_be", GERMAN),
]

here = Path(__file__).parent
for codec, text in SAMPLES:
    (here / f"{codec}.bin").write_bytes(text.encode(codec))
    (here / f"{codec}.txt").write_text(text, encoding="utf-8")
