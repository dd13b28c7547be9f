"""The scenario corpus through this package: a call a line in, an answer a line out."""

import json
import sys

from pinfold import Session

options = json.loads(sys.argv[1])
session = Session(options.pop("root"), dialect=options.pop("dialect"), **options)

for line in sys.stdin:
    call = json.loads(line)
    result = session.run(call["tool"], call["args"])
    print(json.dumps(result.to_dict()), flush=True)
