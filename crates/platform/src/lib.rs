//! A process before it means anything: settings, telemetry, HTTP server, token check, health, database pool, tasks.
