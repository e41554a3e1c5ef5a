// Applies the patterns of a problem matcher to the lines on stdin, with the engine that VS Code uses, and
// prints what they capture: node match.mjs vscode|github FILE < LINES
import { readFileSync } from "node:fs";

const [kind, file] = process.argv.slice(2);
const config = JSON.parse(readFileSync(file, "utf8"));
const matchers =
  kind === "vscode"
    ? config.tasks.map((task) => ({ ...task.problemMatcher, pattern: [task.problemMatcher.pattern] }))
    : config.problemMatcher;

function read(line) {
  for (const matcher of matchers) {
    const pattern = matcher.pattern[0];
    const found = new RegExp(pattern.regexp).exec(line);
    if (found === null) continue;
    const group = (name) => (pattern[name] === undefined ? undefined : found[pattern[name]]);
    return {
      file: group("file"),
      row: Number(group("line")),
      column: Number(group("column")),
      severity: group("severity") ?? matcher.severity,
      text: `${group("code")} ${group("message")}`,
    };
  }
  return null;
}

const lines = readFileSync(0, "utf8").split("\n").filter((line) => line !== "");
console.log(JSON.stringify(lines.map(read)));
