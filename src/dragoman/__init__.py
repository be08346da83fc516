"""dragoman: one message broker that speaks five broker/worker protocols."""
