"""Checks SARIF logs against the official schema: validate.py SCHEMA LOG…  (needs `jsonschema`)"""
import json
import sys

import jsonschema

schema, *logs = sys.argv[1:]
with open(schema, encoding="utf-8") as file:
    schema = json.load(file)
validator = jsonschema.validators.validator_for(schema)(schema)
bad = 0
for log in logs:
    with open(log, encoding="utf-8") as file:
        document = json.load(file)
    for error in validator.iter_errors(document):
        bad += 1
        print(f"{log}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
    # What the schema cannot say: an index must be that of the rule with this id, a relative URI needs its base.
    for run in document["runs"]:
        rules = run["tool"]["driver"]["rules"]
        for result in run["results"]:
            index = result.get("ruleIndex", -1)
            if index >= 0 and rules[index]["id"] != result["ruleId"]:
                bad += 1
                print(f"{log}: ruleIndex {index} is not {result['ruleId']}")
            for location in result["locations"] + result.get("relatedLocations", []):
                base = location["physicalLocation"]["artifactLocation"].get("uriBaseId")
                if base is not None and base not in run["originalUriBaseIds"]:
                    bad += 1
                    print(f"{log}: {base} is not defined")
sys.exit(bad > 0)
