// Package simulation runs the planner against a model of Redis, Kubernetes and
// the network, with failures between any two steps of the operator, and checks
// the promises of docs/safety-rules.md after each of them. A seed gives the same
// schedule again.
//
// The model keeps the facts of replication that were measured on real servers:
// replication IDs and offsets, a new ID with the first replica, partial and full
// resyncs, a full copy that starts earlier than its end, data that a dead
// primary had sent, acknowledgements that lag, min-replicas that notices late, a
// link that stays up in a partition, and a restart from an append-only file
// that knows no lineage. Commands to a process that hangs or is cut off may come late,
// and an operator that was paused may go on after another led meanwhile.
package simulation
