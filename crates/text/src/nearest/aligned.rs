//! Aligns the text that an edit looks for with the nearest region of the file, and lists how they differ.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use super::excerpt::{Excerpt, MAX_SHOWN_BYTES};
use super::fold::{Folded, Folds, Segment, key_of, segments};
use super::likeness::{Work, best_part};
use super::old_text::{OldText, Prefix, is_placeholder};
use super::reason::{Difference, Kind, differences, explanations, part_of, written_out};
use super::search::{MAX_SEGMENTS, Region, Step, best_region};
use super::{INFALLIBLE, line_end, line_number, line_start};

/// How far from a part of the text the next part may be, where a placeholder stands between them.
const MAX_LEFT_OUT: usize = 256 * 1024;

/// A region of the file and the text, aligned.
pub(super) struct Aligned<'t> {
    /// The text's segments.
    text: Vec<Segment<'t>>,
    text_keys: Vec<String>,
    /// The file's segments around the region, and their keys.
    file: Vec<Segment<'t>>,
    file_keys: Vec<String>,
    steps: Vec<Step>,
    /// Placeholders of the text, and how many lines of the file each stands for.
    left_out: Vec<(usize, usize)>,
}

impl<'t> Aligned<'t> {
    pub(super) fn find(file: &'t str, old: &'t OldText, work: &Work<'_>) -> Option<Self> {
        let text: Vec<_> = segments(&old.text, 0).take(MAX_SEGMENTS).collect();
        let text_keys: Vec<String> = text.iter().map(key_of).collect();
        let whole = best_region(file, 0, &text_keys, false, work);
        let exact = |number: usize| {
            let steps =
                whole.iter().flat_map(|region| region.steps.iter().map(move |step| (region, step)));
            steps.into_iter().any(|(region, step)| {
                matches!(step, Step::Pair(text, file)
                    if *text == number && region.keys[*file] == text_keys[number])
            })
        };
        let placeholders: Vec<usize> = (0..text.len())
            .filter(|number| is_placeholder(text[*number].text) && !exact(*number))
            .collect();
        let mut aligned = Self {
            text,
            text_keys,
            file: Vec::new(),
            file_keys: Vec::new(),
            steps: Vec::new(),
            left_out: Vec::new(),
        };
        if placeholders.is_empty() {
            aligned.append(whole?, 0);
        } else {
            aligned.find_parts(file, &placeholders, work)?;
        }
        Some(aligned)
    }

    fn append(&mut self, region: Region<'t>, first: usize) {
        let before = self.file.len();
        self.steps.extend(region.steps.iter().map(|step| match *step {
            Step::Pair(text, file) => Step::Pair(text + first, file + before),
            Step::OnlyText(text) => Step::OnlyText(text + first),
            Step::OnlyFile(file) => Step::OnlyFile(file + before),
        }));
        self.file.extend(region.segments);
        self.file_keys.extend(region.keys);
    }

    /// Finds the parts of the text between its placeholders, the longest first.
    fn find_parts(&mut self, file: &'t str, placeholders: &[usize], work: &Work<'_>) -> Option<()> {
        let ends = placeholders.iter().copied().chain([self.text.len()]);
        let mut from = 0;
        let parts: Vec<Range<usize>> =
            ends.map(|end| std::mem::replace(&mut from, end + 1)..end).collect();
        let weight = |part: &Range<usize>| {
            self.text_keys[part.clone()].iter().map(String::len).sum::<usize>()
        };
        let heaviest = (0..parts.len()).rev().max_by_key(|number| weight(&parts[*number]))?;
        let find = |number: usize, range: Range<usize>, last: bool| {
            let keys = &self.text_keys[parts[number].clone()];
            best_region(&file[range.clone()], range.start, keys, last, work)
        };
        let mut regions: Vec<Option<Region<'t>>> = parts.iter().map(|_| None).collect();
        let first = find(heaviest, 0..file.len(), false)?;
        let (mut start, mut end) = bounds(&first)?;
        regions[heaviest] = Some(first);
        for (number, region) in regions.iter_mut().enumerate().skip(heaviest + 1) {
            let from = line_end(file, end).min(file.len());
            let to = file.floor_char_boundary(from.saturating_add(MAX_LEFT_OUT));
            *region = find(number, from..to, false);
            end = region.as_ref().and_then(bounds).map_or(end, |(_, end)| end);
        }
        for number in (0..heaviest).rev() {
            let to = line_start(file, start);
            let from = line_start(file, file.floor_char_boundary(to.saturating_sub(MAX_LEFT_OUT)));
            regions[number] = find(number, from..to, true);
            start = regions[number].as_ref().and_then(bounds).map_or(start, |(start, _)| start);
        }
        let mut last_end = None;
        for (number, region) in regions.into_iter().enumerate() {
            let range = region.as_ref().and_then(bounds);
            if number > 0 {
                let between = match (last_end, range) {
                    (Some(last), Some((start, _))) if last < start => {
                        memchr::memchr_iter(b'\n', &file.as_bytes()[last..start]).count()
                    }
                    _ => 0,
                };
                // One of the line ends between them is that of the line before.
                self.left_out.push((placeholders[number - 1], between.saturating_sub(1)));
            }
            match region {
                Some(region) => {
                    self.append(region, parts[number].start);
                    last_end = range.map(|(_, end)| end).or(last_end);
                }
                None => self.steps.extend(parts[number].clone().map(Step::OnlyText)),
            }
        }
        Some(())
    }

    /// The file's lines that the region takes, as a range of the file's segments' places.
    fn range(&self) -> Option<Range<usize>> {
        let files = self.steps.iter().filter_map(|step| match step {
            Step::Pair(_, file) => Some(&self.file[*file]),
            _ => None,
        });
        let start = files.clone().map(|segment| segment.start).min()?;
        let end = files.map(|segment| segment.start + segment.text.len()).max()?;
        Some(start..end)
    }

    /// Writes the region and the reasons.
    pub(super) fn describe(mut self, file: &str, old: &OldText, work: &Work<'_>, out: &mut String) {
        let Some(mut range) = self.range() else { return };
        let mut found = Vec::new();
        self.note_moved(file, &mut range, &mut found);
        // Where the text's first or last lines are missing, the file may have others in their place.
        let missing = |steps: &mut dyn Iterator<Item = &Step>| {
            steps.take_while(|step| matches!(step, Step::OnlyText(_))).count().min(3)
        };
        let above = missing(&mut self.steps.iter());
        let below = missing(&mut self.steps.iter().rev());
        let first_line = line_number(file, range.start);
        let line_of = |segment: &Segment<'_>| match segment.start.checked_sub(range.start) {
            Some(_) => {
                first_line + line_number(&file[range.start..], segment.start - range.start) - 1
            }
            None => {
                first_line - (line_number(&file[segment.start..], range.start - segment.start) - 1)
            }
        };
        self.note_differences(old, file.len(), &line_of, work, &mut found);
        let marked: BTreeSet<usize> = found.iter().filter_map(marked_line).collect();
        let excerpt = Excerpt::new(file, range, (above, below), self.focus(work));
        excerpt.write(file, &marked, old.more_lines, out);
        for reason in explanations(found) {
            writeln!(out, "{reason}").expect(INFALLIBLE);
        }
    }

    /// Where in the first segment the text's is, so that the right part of a long line is shown.
    fn focus(&self, work: &Work<'_>) -> usize {
        let first = self.steps.iter().find_map(|step| match step {
            Step::Pair(text, file) => Some((&self.text[*text], &self.file[*file])),
            _ => None,
        });
        let Some((text, file)) = first else { return 0 };
        if file.text.len() <= MAX_SHOWN_BYTES {
            return file.start;
        }
        let [one, other] = [text.text, file.text].map(|line| Folded::new(line, Folds::ALL));
        let inside = part_of(&one, &other).or_else(|| {
            let (_, at) = best_part(&one.text, &other.text, work)?;
            other.origin(at)
        });
        file.start + inside.map_or(0, |range| range.start)
    }

    /// Notes segments that are in both, but in another order, and adds them to the region.
    fn note_moved(&mut self, file: &str, range: &mut Range<usize>, found: &mut Vec<Difference>) {
        let paired: BTreeSet<usize> = self
            .steps
            .iter()
            .filter_map(|step| if let Step::Pair(_, file) = step { Some(*file) } else { None })
            .collect();
        let missing: Vec<usize> = self
            .steps
            .iter()
            .filter_map(|step| if let Step::OnlyText(text) = step { Some(*text) } else { None })
            .filter(|text| !self.text_keys[*text].is_empty())
            .collect();
        let (Some(first), Some(last)) = (paired.first().copied(), paired.last().copied()) else {
            return;
        };
        let mut moved = BTreeSet::new();
        for text in missing {
            let near = first.saturating_sub(3)..(last + 4).min(self.file.len());
            let there = near.into_iter().find(|file| {
                !paired.contains(file)
                    && !moved.contains(file)
                    && self.file_keys[*file] == self.text_keys[text]
            });
            let Some(there) = there else { continue };
            moved.insert(there);
            self.steps
                .retain(|step| *step != Step::OnlyText(text) && *step != Step::OnlyFile(there));
            let segment = self.file[there];
            range.start = range.start.min(segment.start);
            range.end = range.end.max(segment.start + segment.text.len());
            let line = line_number(file, segment.start);
            let number = self.text_line(text);
            let detail = format!(
                "lines are in another order: line {number} of the text is line {line} of the file"
            );
            found.push(Difference { kind: Kind::Order, line, detail });
        }
    }

    /// The number of the line of the text that a segment is on.
    fn text_line(&self, number: usize) -> usize {
        self.text[..number].iter().filter(|segment| segment.line_break == "\n").count() + 1
    }

    fn note_differences(
        &self,
        old: &OldText,
        file_len: usize,
        line_of: &dyn Fn(&Segment<'_>) -> usize,
        work: &Work<'_>,
        found: &mut Vec<Difference>,
    ) {
        let mut push = |kind, line, detail: String| found.push(Difference { kind, line, detail });
        for (text, lines) in &self.left_out {
            let placeholder = self.text[*text].text.trim();
            let placeholder = &placeholder[..placeholder.floor_char_boundary(60)];
            let detail = match lines {
                0 => format!("leave out \"{placeholder}\", it is not in the file"),
                1 => format!("1 line left out where the text has \"{placeholder}\""),
                _ => format!("{lines} lines left out where the text has \"{placeholder}\""),
            };
            push(Kind::Placeholder, *text, detail);
        }
        let mut last: Option<(usize, usize)> = None;
        let (final_text, final_file) = match self.steps.last() {
            Some(Step::Pair(text, file)) => (Some(*text), Some(*file)),
            _ => (None, None),
        };
        for step in &self.steps {
            match *step {
                Step::OnlyText(text) => {
                    push(Kind::MissingInFile, self.text_line(text), String::new());
                }
                Step::OnlyFile(file) => {
                    let line = line_of(&self.file[file]);
                    // The rest of a line that is partly in the text.
                    if self.file[file].line_break == "\n" || !self.file_keys[file].is_empty() {
                        push(Kind::MissingInText, line, String::new());
                    }
                }
                Step::Pair(text, file) => {
                    let line = line_of(&self.file[file]);
                    match old.prefix {
                        Some(Prefix::LineNumber { tab: true }) => push(
                            Kind::LineNumbers,
                            line,
                            "leave out the line number and the tab after it, they are not in the file".into(),
                        ),
                        Some(Prefix::LineNumber { tab: false }) => push(
                            Kind::LineNumbers,
                            line,
                            "leave out the line number, it is not in the file".into(),
                        ),
                        Some(Prefix::DiffMarker) => push(
                            Kind::DiffMarkers,
                            line,
                            "leave out the diff marker, it is not in the file".into(),
                        ),
                        None => {}
                    }
                    if let Some((last_text, last_file)) = last
                        && (last_text + 1, last_file + 1) == (text, file)
                    {
                        let breaks =
                            (self.text[last_text].line_break, self.file[last_file].line_break);
                        if let Some(detail) = line_breaks_differ(breaks.0, breaks.1) {
                            push(Kind::LineBreaks, line_of(&self.file[last_file]), detail);
                        }
                    }
                    last = Some((text, file));
                }
            }
        }
        // The line break at the end of the text.
        if let (Some(text), Some(file)) = (final_text, final_file)
            && !self.text[text].line_break.is_empty()
        {
            let line = line_of(&self.file[file]);
            let segment = &self.file[file];
            let detail = match segment.line_break {
                "" if segment.start + segment.text.len() == file_len => {
                    Some(format!("the file ends without a line break after line {line}"))
                }
                line_break => line_breaks_differ(self.text[text].line_break, line_break),
            };
            found.extend(detail.map(|detail| Difference { kind: Kind::LineBreaks, line, detail }));
        }
        let ends: (Option<usize>, Option<usize>) = (
            self.steps
                .iter()
                .find_map(|step| if let Step::Pair(text, _) = step { Some(*text) } else { None }),
            final_text,
        );
        for step in &self.steps {
            if let Step::Pair(text, file) = *step {
                let before = found.len();
                let line = line_of(&self.file[file]);
                let (one, other) = (self.text[text].text, self.file[file].text);
                if !work.goes_on(one.len() + other.len()) {
                    break;
                }
                differences(one, other, line, found);
                // The first line may start, and the last may end, anywhere.
                let first = ends.0 == Some(text) && other.ends_with(one);
                let last = ends.1 == Some(text)
                    && self.text[text].line_break.is_empty()
                    && other.starts_with(one);
                if first || last {
                    found.retain({
                        let mut number = 0;
                        move |difference| {
                            number += 1;
                            number <= before || difference.kind != Kind::Part
                        }
                    });
                }
            }
        }
    }
}

/// The line whose whitespace is made visible because of a difference.
fn marked_line(difference: &Difference) -> Option<usize> {
    let whitespace = [Kind::InnerWhitespace, Kind::Indentation, Kind::TrailingWhitespace];
    whitespace.contains(&difference.kind).then_some(difference.line)
}

/// Where a region starts and ends in the file.
fn bounds(region: &Region<'_>) -> Option<(usize, usize)> {
    let mut files = region.steps.iter().filter_map(|step| match step {
        Step::Pair(_, file) => Some(&region.segments[*file]),
        _ => None,
    });
    let first = files.next()?;
    let last = files.next_back().unwrap_or(first);
    Some((first.start, last.start + last.text.len()))
}

fn line_breaks_differ(text: &str, file: &str) -> Option<String> {
    if text == file || text.is_empty() || file.is_empty() {
        return None;
    }
    if text.starts_with('\\') || file.starts_with('\\') {
        return Some(written_out(text, file));
    }
    let named = |line_break: &str| match line_break {
        "\n" => "a line break".to_owned(),
        "\r" => "a lone CR (U+000D) as line break".to_owned(),
        other => format!("U+{:04X} as line break", other.chars().next().map_or(0, u32::from)),
    };
    Some(format!("the text has {}; the file has {}", named(text), named(file)))
}
