"""Checks JUnit reports against a schema: junit.py SCHEMA REPORT…  (needs `lxml`)"""
import sys

from lxml import etree

schema, *reports = sys.argv[1:]
schema = etree.XMLSchema(etree.parse(schema))
bad = 0
for report in reports:
    document = etree.parse(report)
    if not schema.validate(document):
        bad += 1
        print(f"{report}: {schema.error_log}")
    # What the schema cannot say: the counts are those of the tests below.
    for suite in [document.getroot(), *document.iter("testsuite")]:
        for attribute, tag in [("tests", "testcase"), ("failures", "failure"), ("errors", "error")]:
            if int(suite.get(attribute)) != len(list(suite.iter(tag))):
                bad += 1
                print(f"{report}: {suite.get('name')}: `{attribute}` is wrong")
sys.exit(bad > 0)
