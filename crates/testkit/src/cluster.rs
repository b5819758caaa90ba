//! A RabbitMQ cluster of three nodes on one machine, behind one address as in production.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use platform::Tasks;
use tokio::{net::TcpStream, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::servers::{checkout, parse};

const NODES: [&str; 3] = ["one", "two", "three"];

/// A cluster of three nodes. Dropping it kills them and deletes their data.
pub struct Cluster {
    dir: PathBuf,
    shared: Vec<(&'static str, String)>,
    epmd: Child,
    ports: Vec<u16>,
    api: String,
    front: u16,
    tasks: Tasks,
}

impl Cluster {
    /// Starts the nodes one after the other, so that each can join the earlier ones.
    pub async fn start() -> Self {
        let name = format!("test-{}", uuid::Uuid::new_v4().simple());
        let epmd_port = free_port().to_string();
        let epmd = Command::new("epmd")
            .args(["-port", &epmd_port, "-address", "127.0.0.1"])
            .stdout(Stdio::null())
            .spawn();
        let shared = vec![
            ("BACKHAUL_RABBITMQ_PEERS", NODES.join(" ")),
            ("BACKHAUL_RABBITMQ_EPMD_PORT", epmd_port),
            ("BACKHAUL_RABBITMQ_COOKIE", name.clone()),
            ("RABBITMQ_PASSWORD", "cluster".to_owned()),
        ];
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let mut cluster = Self {
            dir: checkout().join(".run").join(name),
            shared,
            epmd: epmd.unwrap(),
            ports: Vec::new(),
            api: String::new(),
            front: listener.local_addr().unwrap().port(),
            tasks: Tasks::default(),
        };
        for node in 0..NODES.len() {
            let printed = tokio::task::block_in_place(|| cluster.control(node, &["start"]));
            let settings = parse(&printed);
            let amqp = url::Url::parse(&settings["AMQP_URL"]).unwrap();
            cluster.ports.push(amqp.port().unwrap());
            cluster.api = settings["RABBITMQ_API_URL"].clone();
        }
        let ports = cluster.ports.clone();
        cluster.tasks.spawn("front", |stop| forward(listener, ports, stop));
        cluster
    }

    /// The address that leads to any node that is up.
    pub fn amqp_url(&self) -> String {
        format!("amqp://backhaul:cluster@127.0.0.1:{}/%2f", self.front)
    }

    /// The console of the last node.
    pub fn rabbitmq_api_url(&self) -> String {
        self.api.clone()
    }

    /// The number of nodes that have a replica of a queue.
    pub async fn members(&self, queue: &str) -> usize {
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let request = client.get(format!("{}/queues/%2f/{queue}", self.api));
        let response = request.basic_auth("backhaul", Some("cluster")).send().await.unwrap();
        let queue: serde_json::Value = response.error_for_status().unwrap().json().await.unwrap();
        queue["members"].as_array().map_or(0, Vec::len)
    }

    /// Kills a node with SIGKILL.
    pub fn kill(&self, node: usize) {
        self.control(node, &["kill"]);
    }

    /// Starts a node again, with its data.
    pub fn start_again(&self, node: usize) {
        self.control(node, &["start"]);
    }

    fn control(&self, node: usize, arguments: &[&str]) -> String {
        let output = Command::new(checkout().join("scripts/servers"))
            .args(arguments)
            .arg("rabbitmq")
            .arg("--dir")
            .arg(self.dir.join(NODES[node]))
            .envs(self.shared.iter().cloned())
            .env("BACKHAUL_RABBITMQ_NODE", NODES[node])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {arguments:?}: {stderr}", NODES[node]);
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A node that did not become ready in time is stopped too. Stopping an unstarted node does nothing.
        for node in 0..NODES.len() {
            self.control(node, &["kill"]);
            self.control(node, &["stop", "--wipe"]);
        }
        drop(self.epmd.kill());
        drop(self.epmd.wait());
        if let Err(error) = std::fs::remove_dir_all(&self.dir) {
            eprintln!("{} was not removed: {error}", self.dir.display());
        }
    }
}

/// A free port below those that the system uses for outgoing connections.
fn free_port() -> u16 {
    let mut ports = (0..).map(|_| 16_384 + u16::from(uuid::Uuid::new_v4().as_bytes()[0]) * 8);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// Forwards connections, each to the next node that accepts it.
async fn forward(listener: tokio::net::TcpListener, ports: Vec<u16>, stop: CancellationToken) {
    let mut open = JoinSet::new();
    let turn = Arc::new(AtomicUsize::new(0));
    loop {
        let mut client = tokio::select! {
            () = stop.cancelled() => return,
            Some(_) = open.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => client,
                Err(_) => continue,
            },
        };
        let ports = ports.clone();
        let turn = turn.clone();
        open.spawn(async move {
            for _ in 0..ports.len() {
                let port = ports[turn.fetch_add(1, Ordering::Relaxed) % ports.len()];
                let dial = TcpStream::connect(("127.0.0.1", port));
                if let Ok(Ok(mut node)) = tokio::time::timeout(Duration::from_secs(1), dial).await {
                    drop(tokio::io::copy_bidirectional(&mut client, &mut node).await);
                    return;
                }
            }
        });
    }
}
