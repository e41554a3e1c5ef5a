//! The language server, driven over its streams as an editor does it.
#![allow(clippy::expect_used, reason = "tests may panic")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use support::Project;

const HELPER: &str = "import torch\n\n\ndef start():\n    return torch.zeros(3)\n";
const MOVED: &str = "import torch\n\n\ndef start():\n    return torch.zeros(3, device=\"cuda\")\n";
const MAIN: &str = "import torch\n\nfrom helper import start\n\nif torch.cuda.is_available():\n    é = \"😀\"; print(start() + torch.ones(3, device=\"cuda\"))\n";

/// An editor that talks to the built server.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    root: String,
    next: u64,
    /// Messages of the server that nobody has waited for yet.
    waiting: Vec<Value>,
}

impl Editor {
    fn new(root: &Path, capabilities: &Value) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_samedevice"))
            .arg("server")
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let root = format!("file://{}", root.display());
        let mut editor = Self { child, input, output, root, next: 0, waiting: Vec::new() };
        let folder = json!({"uri": editor.root, "name": "project"});
        let params = json!({"processId": null, "capabilities": capabilities, "workspaceFolders": [folder]});
        let answer = editor.ask("initialize", &params);
        assert_eq!(answer["serverInfo"]["name"], "samedevice");
        editor.tell("initialized", &json!({}));
        editor
    }

    fn uri(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let input = self.input.as_mut().expect("the server's input");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("a reader");
        input.flush().expect("a reader");
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("text") > 0, "the server has ended");
            match line.trim().split_once(": ") {
                Some(("Content-Length", number)) => length = number.parse().expect("a number"),
                Some(_) => {}
                None => break,
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).expect("the whole message");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// The next message that passes the test. Others are kept.
    fn wait(&mut self, passes: &dyn Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(passes) {
            return self.waiting.remove(at);
        }
        loop {
            let message = self.receive();
            if passes(&message) {
                return message;
            }
            self.waiting.push(message);
        }
    }

    fn ask_for_answer(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.wait(&|message| message["id"] == id && message.get("method").is_none())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.ask_for_answer(method, params)["result"].take()
    }

    fn open(&mut self, name: &str, text: &str) {
        let uri = self.uri(name);
        let file = json!({"uri": uri, "languageId": "python", "version": 1, "text": text});
        self.tell("textDocument/didOpen", &json!({"textDocument": file}));
    }

    fn change(&mut self, name: &str, version: i32, text: &str) {
        let file = json!({"uri": self.uri(name), "version": version});
        self.tell(
            "textDocument/didChange",
            &json!({"textDocument": file, "contentChanges": [{"text": text}]}),
        );
    }

    /// The next diagnostics of a file.
    fn diagnostics(&mut self, name: &str) -> Vec<Value> {
        let uri = self.uri(name);
        let message =
            self.wait(&|m| m["method"] == "textDocument/publishDiagnostics" && m["params"]["uri"] == *uri);
        message["params"]["diagnostics"].as_array().expect("a list").clone()
    }

    fn actions(&mut self, name: &str, range: &Value, only: &[&str]) -> Vec<Value> {
        let mut context = json!({"diagnostics": []});
        if !only.is_empty() {
            context["only"] = json!(only);
        }
        let params = json!({"textDocument": {"uri": self.uri(name)}, "range": range, "context": context});
        self.ask("textDocument/codeAction", &params).as_array().expect("a list").clone()
    }

    /// Says good-bye, and gives the exit code.
    fn end(mut self) -> Option<i32> {
        self.ask("shutdown", &Value::Null);
        self.tell("exit", &Value::Null);
        self.child.wait().expect("an end").code()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text with the edits of an action on one file, last first.
fn edited(text: &str, action: &Value) -> String {
    let changes = action["edit"]["documentChanges"].as_array().expect("changes");
    assert_eq!(changes.len(), 1, "one file");
    let mut edits = changes[0]["edits"].as_array().expect("edits").clone();
    edits.sort_by_key(|e| (e["range"]["start"]["line"].as_u64(), e["range"]["start"]["character"].as_u64()));
    let mut text = text.to_owned();
    for edit in edits.iter().rev() {
        let (start, end) = (offset(&text, &edit["range"]["start"]), offset(&text, &edit["range"]["end"]));
        text.replace_range(start..end, edit["newText"].as_str().expect("text"));
    }
    text
}

/// The byte offset of a position in UTF-16.
fn offset(text: &str, position: &Value) -> usize {
    let line = usize::try_from(position["line"].as_u64().expect("a line")).expect("small");
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut units = position["character"].as_u64().expect("a column");
    let mut at = start;
    for c in text[start..].chars() {
        if units == 0 {
            break;
        }
        units -= c.len_utf16() as u64;
        at += c.len_utf8();
    }
    at
}

#[test]
fn an_editor_sees_what_a_check_finds() {
    let project = Project::new(&[("LICENSE", ""), ("helper.py", HELPER), ("main.py", MAIN)]);
    let mut editor = Editor::new(project.root(), &json!({}));
    editor.open("main.py", MAIN);
    let seen = editor.diagnostics("main.py");
    let run = project.run("check --output-format json main.py");
    let found: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let codes = |list: &[Value]| {
        list.iter().map(|f| f["code"].as_str().expect("a code").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(codes(&seen), codes(found.as_array().expect("a list")));
    assert_eq!(codes(&seen), ["SD201"]);
    // The column counts UTF-16 units: the picture has two.
    let at = MAIN.find("start() +").expect("the sum");
    assert_eq!(offset(MAIN, &seen[0]["range"]["start"]), at, "{seen:?}");
    let related = seen[0]["relatedInformation"].as_array().expect("other places");
    assert!(related.iter().any(|r| r["location"]["uri"].as_str().is_some_and(|u| u.ends_with("helper.py"))));
    assert!(seen[0]["codeDescription"]["href"].as_str().is_some_and(|href| href.contains("SD201")));
    let hover =
        json!({"textDocument": {"uri": editor.uri("main.py")}, "position": seen[0]["range"]["start"]});
    let hover = editor.ask("textDocument/hover", &hover);
    assert!(
        hover["contents"]["value"].as_str().is_some_and(|text| text.contains("SD201 mixed-device-operation"))
    );
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn an_unsaved_change_of_an_imported_file_counts() {
    let project = Project::new(&[("LICENSE", ""), ("helper.py", HELPER), ("main.py", MAIN)]);
    let mut editor = Editor::new(project.root(), &json!({}));
    editor.open("main.py", MAIN);
    assert_eq!(editor.diagnostics("main.py").len(), 1);
    editor.open("helper.py", HELPER);
    assert_eq!(editor.diagnostics("main.py").len(), 1);
    editor.change("helper.py", 2, MOVED);
    assert_eq!(editor.diagnostics("main.py").len(), 0);
    let close = json!({"textDocument": {"uri": editor.uri("helper.py")}});
    editor.tell("textDocument/didClose", &close);
    assert_eq!(editor.diagnostics("main.py").len(), 1);
}

#[test]
fn fixes_and_comments_leave_no_finding() {
    let text = "import torch\n\nx = torch.ones(3)\nif torch.cuda.is_available():\n    x = x.cuda()\n    print(x + torch.zeros(3))\n";
    let project = Project::new(&[("LICENSE", ""), ("main.py", text)]);
    let mut editor = Editor::new(project.root(), &json!({}));
    editor.open("main.py", text);
    let seen = editor.diagnostics("main.py");
    assert_eq!(seen.len(), 1, "{seen:?}");
    let quick = editor.actions("main.py", &seen[0]["range"], &["quickfix"]);
    let titles: Vec<&str> = quick.iter().filter_map(|a| a["title"].as_str()).collect();
    assert!(
        matches!(titles.as_slice(), [fix, ignore] if fix.contains("device") && ignore.contains("suppress SD201")),
        "{titles:?}"
    );
    for (n, action) in quick.iter().enumerate() {
        let new = edited(text, action);
        editor.change("main.py", 2 + i32::try_from(n).expect("few"), &new);
        assert_eq!(editor.diagnostics("main.py").len(), 0, "{new}");
    }
    assert!(edited(text, &quick[1]).contains("# samedevice: ignore[SD201]"));
    let nowhere = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}});
    assert_eq!(editor.actions("main.py", &nowhere, &["quickfix"]).len(), 0);
}

#[test]
fn all_safe_fixes_are_one_action() {
    let text = "import torch\n\nif torch.cuda.is_available:\n    x = torch.ones(3, device=\"cuda\")\n    print(x.numpy())\n";
    let project = Project::new(&[("LICENSE", ""), ("main.py", text)]);
    let mut editor = Editor::new(project.root(), &json!({}));
    editor.open("main.py", text);
    assert_eq!(editor.diagnostics("main.py").len(), 2);
    let everywhere = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
    let all = editor.actions("main.py", &everywhere, &["source.fixAll"]);
    assert_eq!(all.len(), 1);
    let new = edited(text, &all[0]);
    editor.change("main.py", 2, &new);
    assert_eq!(editor.diagnostics("main.py").len(), 0, "{new}");
    assert_eq!(editor.actions("main.py", &everywhere, &["source.fixAll"]).len(), 0);
}

#[test]
fn a_wrong_configuration_is_told_and_read_again() {
    let project = Project::new(&[
        ("LICENSE", ""),
        ("main.py", MAIN),
        ("helper.py", HELPER),
        ("samedevice.toml", "ignore = [\"SD9\"]\n"),
    ]);
    let watched = json!({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}});
    let mut editor = Editor::new(project.root(), &watched);
    let registration = editor.wait(&|m| m["method"] == "client/registerCapability");
    editor.send(&json!({"jsonrpc": "2.0", "id": registration["id"], "result": null}));
    editor.open("main.py", MAIN);
    let message = editor.wait(&|m| m["method"] == "window/showMessage");
    let text = message["params"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("samedevice.toml:1: ") && text.contains("SD9"), "{message}");
    project.write("samedevice.toml", "ignore = [\"SD2\"]\n");
    editor.tell("workspace/didChangeWatchedFiles", &json!({"changes": []}));
    assert_eq!(editor.diagnostics("main.py").len(), 0);
}

#[test]
fn what_is_unknown_is_refused_and_an_early_end_is_a_failure() {
    let project = Project::new(&[("LICENSE", "")]);
    let mut editor =
        Editor::new(project.root(), &json!({"general": {"positionEncodings": ["utf-8", "utf-16"]}}));
    let answer = editor.ask_for_answer("textDocument/definition", &json!({}));
    assert_eq!(answer["error"]["code"], -32601);
    let answer = editor.ask_for_answer("textDocument/hover", &json!({"nothing": 1}));
    assert_eq!(answer["error"]["code"], -32602);
    editor.tell("exit", &Value::Null);
    assert_eq!(editor.child.wait().expect("an end").code(), Some(1));
}
