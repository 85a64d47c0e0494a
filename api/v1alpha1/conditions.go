package v1alpha1

// Condition types of a RedisCluster.
const (
	// ConditionReady is True while writes are accepted through the primary
	// Service, every replica is in sync and the whole spec is in force.
	ConditionReady = "Ready"
	// ConditionAvailable is True while a primary accepts writes.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the operator works towards the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True while something is lost or broken that was not asked for.
	ConditionDegraded = "Degraded"
	// ConditionSpecAccepted is False while the spec, or an object it names,
	// cannot be used. What runs stays as it was.
	ConditionSpecAccepted = "SpecAccepted"
	// ConditionPaused is True while the annotation cache.seang.org/paused is "true".
	ConditionPaused = "Paused"
	// ConditionCertificateExpiring is there while members serve TLS. It is True once their
	// certificate should have been renewed.
	ConditionCertificateExpiring = "CertificateExpiring"
	// ConditionVersionSupported is False while the primary runs a version that is
	// not supported or has known flaws. It is a warning: Ready does not depend on it.
	ConditionVersionSupported = "VersionSupported"
)

// Reasons that mean that all is well.
const (
	// ReasonReady: everything is as the spec asks.
	ReasonReady = "Ready"
	// ReasonPrimaryAvailable: a primary accepts writes.
	ReasonPrimaryAvailable = "PrimaryAvailable"
	// ReasonUpToDate: nothing is left to do.
	ReasonUpToDate = "UpToDate"
	// ReasonHealthy: nothing is lost.
	ReasonHealthy = "Healthy"
	// ReasonAccepted: the spec can be used.
	ReasonAccepted = "Accepted"
	// ReasonNotPaused: the operator acts.
	ReasonNotPaused = "NotPaused"
	// ReasonCertificateValid: the certificate that members serve is valid for long enough.
	ReasonCertificateValid = "CertificateValid"
	// ReasonSupported: the version is supported, and no flaw of it is known.
	ReasonSupported = "Supported"
)

// Reasons that name what is waited for.
const (
	// ReasonPodsNotCreated: the StatefulSet could not create pods yet; the
	// message quotes its last warning, for example an exceeded quota.
	ReasonPodsNotCreated = "PodsNotCreated"
	// ReasonPodNotScheduled: a pod has no node; the message is the scheduler's.
	ReasonPodNotScheduled = "PodNotScheduled"
	// ReasonImageNotPulled: an image cannot be pulled.
	ReasonImageNotPulled = "ImageNotPulled"
	// ReasonImageNotRedis: the image runs, but has no redis-server or valkey-server.
	ReasonImageNotRedis = "ImageNotRedis"
	// ReasonVolumeNotBound: a volume claim is not bound.
	ReasonVolumeNotBound = "VolumeNotBound"
	// ReasonPodNotRunning: a pod's container is starting.
	ReasonPodNotRunning = "PodNotRunning"
	// ReasonPodFailing: a pod's container ends, or cannot be made, for the reason
	// that the message names.
	ReasonPodFailing = "PodFailing"
	// ReasonMemberUnreachable: a running member does not answer the operator.
	ReasonMemberUnreachable = "MemberUnreachable"
	// ReasonMemberLoading: a member loads its data from disk.
	ReasonMemberLoading = "MemberLoading"
	// ReasonReplicaSyncing: a replica copies from the primary.
	ReasonReplicaSyncing = "ReplicaSyncing"
	// ReasonScaling: members are added or removed.
	ReasonScaling = "Scaling"
	// ReasonRolling: pods of an older template are replaced, one at a time.
	ReasonRolling = "Rolling"
	// ReasonResizing: memory is being changed.
	ReasonResizing = "Resizing"
	// ReasonConfiguring: a configuration change is being applied.
	ReasonConfiguring = "Configuring"
	// ReasonPromoting: a primary is being chosen and promoted.
	ReasonPromoting = "Promoting"
)

// Reasons why a member does not come back by itself.
const (
	// ReasonDataUnreadable: a member cannot load what is on its volume. While a
	// primary answers it is rebuilt from that; otherwise a person must act.
	ReasonDataUnreadable = "DataUnreadable"
	// ReasonNotSaving: Redis cannot write to its volume, and refuses writes until it
	// can.
	ReasonNotSaving = "NotSaving"
	// ReasonNotKeptAside: a member cannot save what only it may hold, which would be
	// lost if it followed the primary.
	ReasonNotKeptAside = "NotKeptAside"
	// ReasonDowngradeRefused: the image is known to be unable to load the data, and no
	// pod was replaced; or a member runs an older Redis than the primary and
	// cannot read its data; the roll stops there.
	ReasonDowngradeRefused = "DowngradeRefused"
)

// Reasons why no primary can be had.
const (
	// ReasonFencing: the old primary is not proved to have stopped yet.
	ReasonFencing = "Fencing"
	// ReasonNoCandidate: no reachable member is known to hold all that the last
	// primary acknowledged; the message names the missing copy.
	ReasonNoCandidate = "NoCandidate"
	// ReasonForkedHistory: two members have histories that contradict the record.
	ReasonForkedHistory = "ForkedHistory"
	// ReasonDataLost: all members lost their memory at once and there was no
	// persistence: the cluster started empty.
	ReasonDataLost = "DataLost"
)

// Reasons why a spec is not accepted.
const (
	// ReasonInvalidConfig: config has a directive that the operator owns or
	// that Redis refuses.
	ReasonInvalidConfig = "InvalidConfig"
	// ReasonInvalidUser: the rules of a user in auth do not parse, or grant what no
	// application may have.
	ReasonInvalidUser = "InvalidUser"
	// ReasonInvalidSecret: a Secret named in auth is absent or malformed.
	ReasonInvalidSecret = "InvalidSecret"
	// ReasonNameConflict: an object with the name of a child exists and is not ours.
	ReasonNameConflict = "NameConflict"
	// ReasonMemoryTooSmall: the data does not fit into the new memoryLimit.
	ReasonMemoryTooSmall = "MemoryTooSmall"
	// ReasonStorageTooSmall: storage.size is less than that of the volumes.
	ReasonStorageTooSmall = "StorageTooSmall"
	// ReasonRejected: the API server rejected a child object; the message is its.
	ReasonRejected = "Rejected"
)

// Reasons of certificates.
const (
	// ReasonInvalidCertificate: the Secret named in tls, or that of cert-manager, is absent
	// or has a certificate that cannot be used; members keep what they have.
	ReasonInvalidCertificate = "InvalidCertificate"
	// ReasonCertManagerMissing: tls.issuerRef needs cert-manager, which is not installed.
	ReasonCertManagerMissing = "CertManagerMissing"
	// ReasonCertificateNotIssued: cert-manager has not issued the certificate yet; the
	// message is its.
	ReasonCertificateNotIssued = "CertificateNotIssued"
	// ReasonCertificateNotRenewed: less than a quarter of the life of the certificate, or
	// less than 30 days, is left.
	ReasonCertificateNotRenewed = "CertificateNotRenewed"
	// ReasonCertificateExpired: the certificate that members serve has expired.
	ReasonCertificateExpired = "CertificateExpired"
)

// Reasons to run another version.
const (
	// ReasonVersionUnsupported: the operator does not promise to work with it.
	ReasonVersionUnsupported = "VersionUnsupported"
	// ReasonVersionVulnerable: it has known flaws; the message names them and the
	// versions that are without.
	ReasonVersionVulnerable = "VersionVulnerable"
)

// Other reasons.
const (
	// ReasonReconcileError: the last pass failed; the message is its error.
	ReasonReconcileError = "ReconcileError"
	// ReasonPausedByUser: the annotation cache.seang.org/paused is "true".
	ReasonPausedByUser = "PausedByUser"
	// ReasonDeleting: the RedisCluster is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonUnknown: not enough is known yet.
	ReasonUnknown = "Unknown"
)
