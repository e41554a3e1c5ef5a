//! `samedevice server`: a language server on standard input and output.
//!
//! It lints the open Python files with the texts in the editor, and everything else as it is on the disk. After a change it waits until the
//! editor is quiet for a moment. What an edit does not touch is kept ([`Memo`](crate::analysis::Memo)).

mod actions;
mod lint;
mod places;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lsp_server::{Connection, ErrorCode, Message, Notification, ProtocolError, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument, DidOpenTextDocument,
    DidSaveTextDocument, Notification as _, PublishDiagnostics, ShowMessage,
};
use lsp_types::request::{CodeActionRequest, HoverRequest, RegisterCapability, Request as _};
use lsp_types::{
    CodeActionKind, CodeActionOptions, DidChangeTextDocumentParams, DidChangeWatchedFilesRegistrationOptions,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, FileSystemWatcher, GlobPattern,
    HoverProviderCapability, InitializeParams, InitializeResult, MessageType, PositionEncodingKind,
    PublishDiagnosticsParams, Registration, RegistrationParams, ServerCapabilities, ServerInfo,
    ShowMessageParams, TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::lint::{Document, Linter};
use self::places::{Encoding, path_of};
use super::Failure;

/// How long the editor must be quiet before the files are linted.
const QUIET: Duration = Duration::from_millis(200);

/// Files on the disk whose changes matter.
const WATCHED: [&str; 4] = ["**/*.py", "**/samedevice.toml", "**/.samedevice.toml", "**/pyproject.toml"];

/// Serves until the editor says `exit` or closes the stream.
///
/// # Errors
/// If the stream breaks, or the editor does not speak the protocol.
pub fn run() -> Result<ExitCode, Failure> {
    let (connection, threads) = Connection::stdio();
    let ended = Server::start(&connection).and_then(Server::serve);
    drop(connection);
    let ended = ended.map_err(|error| Failure::Other(format!("the language client: {error}")))?;
    threads.join().map_err(|error| Failure::Other(format!("the language client: {error}")))?;
    Ok(ended)
}

struct Server<'a> {
    connection: &'a Connection,
    linter: Linter,
    /// The open files, in the order in which they were opened. The order of the inputs stays the same, so that what is kept can be used.
    open: Vec<Document>,
    /// Has something changed since the last run?
    changed: bool,
    /// The last problem that the user was told of.
    told: Option<String>,
}

impl<'a> Server<'a> {
    /// Answers `initialize`.
    fn start(connection: &'a Connection) -> Result<Self, ProtocolError> {
        let (id, params) = connection.initialize_start()?;
        let params: InitializeParams = serde_json::from_value(params).unwrap_or_default();
        let offered = params.capabilities.general.as_ref().and_then(|g| g.position_encodings.as_deref());
        let encoding = Encoding::chosen(offered.unwrap_or_default());
        let result = InitializeResult {
            capabilities: capabilities(encoding),
            server_info: Some(ServerInfo {
                name: "samedevice".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        };
        connection.initialize_finish(id, serde_json::to_value(result).unwrap_or_default())?;
        let server = Self {
            connection,
            linter: Linter::new(folder(&params), encoding),
            open: Vec::new(),
            changed: false,
            told: None,
        };
        let files = params.capabilities.workspace.and_then(|w| w.did_change_watched_files);
        if files.and_then(|files| files.dynamic_registration) == Some(true) {
            server.watch();
        }
        Ok(server)
    }

    /// Asks the editor to tell of changes on the disk.
    fn watch(&self) {
        let watcher =
            |glob: &str| FileSystemWatcher { glob_pattern: GlobPattern::String(glob.to_owned()), kind: None };
        let options =
            DidChangeWatchedFilesRegistrationOptions { watchers: WATCHED.into_iter().map(watcher).collect() };
        let registration = Registration {
            id: "files".to_owned(),
            method: DidChangeWatchedFiles::METHOD.to_owned(),
            register_options: serde_json::to_value(options).ok(),
        };
        let params = RegistrationParams { registrations: vec![registration] };
        self.send(Request::new("watch".to_owned().into(), RegisterCapability::METHOD.to_owned(), params));
    }

    fn serve(mut self) -> Result<ExitCode, ProtocolError> {
        loop {
            let message = if self.changed {
                match self.connection.receiver.recv_timeout(QUIET) {
                    Ok(message) => message,
                    Err(error) if error.is_timeout() => {
                        self.lint();
                        continue;
                    }
                    Err(_) => return Ok(ExitCode::FAILURE),
                }
            } else {
                match self.connection.receiver.recv() {
                    Ok(message) => message,
                    Err(_) => return Ok(ExitCode::FAILURE),
                }
            };
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request)? {
                        return Ok(ExitCode::SUCCESS);
                    }
                    self.answer(request);
                }
                Message::Notification(note) if note.method == "exit" => return Ok(ExitCode::FAILURE),
                Message::Notification(note) => self.note(note),
                Message::Response(_) => {}
            }
        }
    }

    fn answer(&mut self, request: Request) {
        // The answers are about the texts that the editor shows.
        if self.changed {
            self.lint();
        }
        let response = match request.method.as_str() {
            CodeActionRequest::METHOD => {
                self.reply(request, |server, params| Some(server.linter.actions(&params)))
            }
            HoverRequest::METHOD => self.reply(request, |server, params| server.linter.hover(&params)),
            method => {
                let message = format!("unknown request: {method}");
                Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message)
            }
        };
        self.send(response);
    }

    fn reply<P: DeserializeOwned, R: Serialize>(
        &self,
        request: Request,
        answer: impl FnOnce(&Self, P) -> Option<R>,
    ) -> Response {
        match serde_json::from_value(request.params) {
            Ok(params) => Response::new_ok(request.id, answer(self, params)),
            Err(error) => Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string()),
        }
    }

    fn note(&mut self, note: Notification) {
        match note.method.as_str() {
            DidOpenTextDocument::METHOD => {
                let Some(DidOpenTextDocumentParams { text_document: file }) = read(note) else { return };
                let path = path_of(&file.uri).filter(|path| is_python(path, &file.language_id));
                let Some(path) = path else { return };
                self.open.retain(|document| document.uri != file.uri);
                self.open.push(Document { uri: file.uri, path, text: file.text, version: file.version });
            }
            DidChangeTextDocument::METHOD => {
                let Some(DidChangeTextDocumentParams { text_document: file, content_changes }) = read(note)
                else {
                    return;
                };
                let document = self.open.iter_mut().find(|document| document.uri == file.uri);
                let (Some(document), Some(last)) = (document, content_changes.into_iter().next_back()) else {
                    return;
                };
                (document.text, document.version) = (last.text, file.version);
            }
            DidCloseTextDocument::METHOD => {
                let Some(DidCloseTextDocumentParams { text_document: file }) = read(note) else { return };
                self.open.retain(|document| document.uri != file.uri);
                self.publish(file.uri, Vec::new(), None);
            }
            DidSaveTextDocument::METHOD | DidChangeWatchedFiles::METHOD => {}
            _ => return,
        }
        self.changed = true;
    }

    /// Lints the open files and publishes what was found.
    fn lint(&mut self) {
        self.changed = false;
        match self.linter.lint(&self.open) {
            Ok(()) => self.told = None,
            // What was found before stays. The same problem is told once.
            Err(problem) => {
                if self.told.as_ref() != Some(&problem) {
                    self.note_out::<ShowMessage>(ShowMessageParams {
                        typ: MessageType::ERROR,
                        message: problem.clone(),
                    });
                    self.told = Some(problem);
                }
                return;
            }
        }
        for document in &self.open {
            let diagnostics = self.linter.diagnostics(&document.path);
            self.publish(document.uri.clone(), diagnostics, Some(document.version));
        }
    }

    fn publish(&self, uri: Uri, diagnostics: Vec<lsp_types::Diagnostic>, version: Option<i32>) {
        self.note_out::<PublishDiagnostics>(PublishDiagnosticsParams { uri, diagnostics, version });
    }

    fn note_out<N: lsp_types::notification::Notification>(&self, params: N::Params) {
        self.send(Notification::new(N::METHOD.to_owned(), params));
    }

    /// Sends a message. If the editor is gone, the next message that is awaited ends the loop.
    fn send(&self, message: impl Into<Message>) {
        let _ = self.connection.sender.send(message.into());
    }
}

fn read<P: DeserializeOwned>(note: Notification) -> Option<P> {
    serde_json::from_value(note.params).ok()
}

/// Is it a Python file? Notebooks are not: editors send their cells one by one.
fn is_python(path: &std::path::Path, language: &str) -> bool {
    language == "python" && path.extension().is_none_or(|extension| extension != "ipynb")
}

/// The folder that names in messages are relative to.
fn folder(params: &InitializeParams) -> PathBuf {
    #[expect(deprecated, reason = "older clients send nothing else")]
    let root = params.root_uri.as_ref();
    let folders = params.workspace_folders.as_deref().unwrap_or_default();
    let first = folders.first().map(|folder| &folder.uri).or(root);
    first.and_then(path_of).or_else(|| std::env::current_dir().ok()).unwrap_or_default()
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::FULL),
            save: Some(true.into()),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![
                    CodeActionKind::QUICKFIX,
                    CodeActionKind::new(actions::FIX_ALL),
                ]),
                ..CodeActionOptions::default()
            }
            .into(),
        ),
        ..ServerCapabilities::default()
    }
}
