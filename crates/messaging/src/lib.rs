//! Events between services over RabbitMQ: topology, outbox, inbox, and a connection that heals itself.
