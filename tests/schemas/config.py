"""Checks configurations as JSON against the schema: config.py SCHEMA CONFIGURATION…  (needs `jsonschema`).
Those whose name starts with `wrong` must not hold."""
import json
import pathlib
import sys

import jsonschema

schema, *documents = sys.argv[1:]
schema = json.loads(pathlib.Path(schema).read_text(encoding="utf-8"))
kind = jsonschema.validators.validator_for(schema)
kind.check_schema(schema)
bad = 0
for document in map(pathlib.Path, documents):
    holds = kind(schema).is_valid(json.loads(document.read_text(encoding="utf-8")))
    if holds == document.name.startswith("wrong"):
        bad += 1
        print(f"{document}: {'holds' if holds else 'does not hold'}")
sys.exit(bad > 0)
