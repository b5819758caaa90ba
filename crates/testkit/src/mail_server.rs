//! A mail server whose refusals a test chooses. `tests/mail.py` has one that others wrote.

use std::sync::{Arc, Mutex};

use platform::Tasks;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// An SMTP server that runs until the runtime of the test ends.
#[derive(Clone, Default)]
pub struct MailServer {
    pub url: String,
    /// The responses to commands, by the first word of the command; `.` is the end of a mail. Other commands are
    /// accepted. An empty response closes the connection.
    responses: Arc<Mutex<Vec<(&'static str, &'static str)>>>,
    received: Arc<Mutex<Vec<String>>>,
}

impl MailServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("smtp://{}", listener.local_addr().unwrap());
        let server = Self { url, ..Self::default() };
        let own = server.clone();
        let tasks = Tasks::default();
        let connections = tasks.clone();
        tasks.spawn("mail server", |_stop| async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = own.clone();
                connections.spawn("mail connection", |_stop| async move {
                    // A client that closes the connection ends it.
                    server.serve(stream).await.ok();
                });
            }
        });
        server
    }

    /// Replaces the responses to these commands, for example `("RCPT", "550 no such user")`.
    pub fn respond(&self, responses: &[(&'static str, &'static str)]) {
        *self.responses.lock().unwrap() = responses.to_vec();
    }

    /// The mails that were accepted, with their headers, as they were sent.
    pub fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    fn response(&self, command: &str) -> &'static str {
        let responses = self.responses.lock().unwrap();
        let own = responses.iter().find(|(of, _)| *of == command);
        match (own, command) {
            (Some(&(_, response)), _) => response,
            (None, "DATA") => "354 go ahead",
            (None, ".") => "250 2.0.0 queued as 7",
            (None, "QUIT") => "221 bye",
            (None, _) => "250 ok",
        }
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        stream.write_all(b"220 test ESMTP\r\n").await?;
        let mut line = String::new();
        while stream.read_line(&mut line).await? > 0 {
            let command = line.split_whitespace().next().unwrap_or_default().to_uppercase();
            line.clear();
            let mut response = self.response(&command);
            stream.write_all(format!("{response}\r\n").as_bytes()).await?;
            if response.starts_with("354") {
                let mail = read_mail(&mut stream).await?;
                response = self.response(".");
                if response.starts_with('2') {
                    self.received.lock().unwrap().push(mail);
                }
                stream.write_all(format!("{response}\r\n").as_bytes()).await?;
            }
            if response.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// Reads a mail until the line with a dot only.
async fn read_mail(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut mail = String::new();
    loop {
        let start = mail.len();
        if stream.read_line(&mut mail).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if mail.get(start..) == Some(".\r\n") {
            mail.truncate(start);
            return Ok(mail);
        }
    }
}
