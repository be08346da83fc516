"""eMQP/1.0, the protocol of EventMQ: clients, job managers, schedulers, admins, publishers and subscribers."""
