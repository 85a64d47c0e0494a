package controllers_test

// field is one field of spec and two values, all as JSON.
type field struct {
	// base is what else the spec has, and what it has where the field is removed.
	base          string
	first, second string
	// grows is what admission says where the field is made smaller or removed, fixed
	// where it is changed at all once the RedisCluster is there.
	grows, fixed string
	// unseen says why the value is in no child and in no process.
	unseen string
}

// Those who look at fields of the volumes have them; a class from which claims can grow.
const (
	onVolumes    = `{"enablePersistence": true}`
	onTLS        = `{"tls": {"secretName": "certificate-one"}, "auth": {"overlapSeconds": 0}}`
	onIssuer     = `{"tls": {"issuerRef": {"name": "ca"}}}`
	onGrowing    = `{"enablePersistence": true, "storage": {"storageClassName": "` + classGrowing + `"}}`
	classGrowing = "fields-growing"
	atOnce       = `{"auth": {"overlapSeconds": 0}}`
	classOther   = "fields-other"
)

// fields has every field of the schema; what Kubernetes defines is one field.
var fields = map[string]field{
	"replicas":          {first: `2`, second: `3`},
	"memoryLimit":       {first: `"192Mi"`, second: `"96Mi"`},
	"enablePersistence": {first: `true`, second: `false`},
	"image":             {first: `"redis:one"`, second: `"redis:two"`},
	"config": {first: `{"maxmemory-policy": "allkeys-lru", "databases": "32", "slowlog-max-len": "64"}`,
		second: `{"maxmemory-policy": "volatile-ttl", "tcp-keepalive": "30", "appendfsync": "no", "io-threads": "2", "notify-keyspace-events": "Ex"}`},

	"storage.size":             {base: onGrowing, first: `"2Gi"`, second: `"3Gi"`, grows: "storage.size cannot shrink or be removed"},
	"storage.storageClassName": {base: onVolumes, first: `"` + classGrowing + `"`, second: `"` + classOther + `"`, fixed: "storage.storageClassName cannot change"},
	"storage.reclaimPolicy":    {base: onVolumes, first: `"Retain"`, second: `"Delete"`, unseen: "it says what a deletion does"},

	// Without an overlap, or what is left of the old password would be seen.
	"auth.secretName": {base: atOnce, first: `"password-one"`, second: `"password-two"`, unseen: "the values of Secrets are not compared, but tried"},
	"auth.users": {base: atOnce, first: `[{"name": "reader", "rules": "~* +@read"}, {"name": "writer", "rules": "~app:* +@write", "secretName": "password-one"}]`,
		second: `[{"name": "reader", "rules": "~app:* +@read -@dangerous", "secretName": "password-two"}]`},
	"auth.overlapSeconds":         {first: `0`, second: `1`, unseen: "it says how a password changes"},
	"auth.rotateSystemAfterHours": {first: `1`, second: `24`, unseen: "it says when passwords change"},

	"tls.secretName":      {base: onTLS, first: `"certificate-two"`, second: `"certificate-one"`, unseen: "the values of Secrets are not compared, but tried"},
	"tls.clientAuth":      {base: onTLS, first: `"Optional"`, second: `"None"`},
	"tls.plaintext":       {base: onTLS, first: `"Allowed"`, second: `"Refused"`},
	"tls.issuerRef.name":  {base: onIssuer, first: `"other"`, second: `"third"`},
	"tls.issuerRef.kind":  {base: onIssuer, first: `"ClusterIssuer"`, second: `"Issuer"`},
	"tls.issuerRef.group": {base: onIssuer, first: `"issuers.example.com"`, second: `"cert-manager.io"`},

	"durability.mode":        {base: `{"replicas": 2}`, first: `"Strict"`, second: `"Default"`},
	"durability.minReplicas": {base: `{"replicas": 3, "durability": {"mode": "Strict"}}`, first: `2`, second: `1`},

	"scheduling.nodeSelector": {first: `{"disk": "fast"}`, second: `{"disk": "slow", "rack": "1"}`},
	"scheduling.affinity": {first: `{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}}`,
		second: `{"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}}]}}`},
	"scheduling.tolerations": {first: `[{"key": "a", "operator": "Exists"}, {"key": "b", "value": "c"}]`, second: `[{"key": "b", "value": "d", "effect": "NoSchedule"}]`},
	"scheduling.topologySpreadConstraints": {first: `[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]`,
		second: `[{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]`},
	"scheduling.priorityClassName": {first: `"fields-high"`, second: `"fields-low"`},

	"resources.cpu.request": {first: `"200m"`, second: `"50m"`},
	"resources.cpu.limit":   {first: `"2"`, second: `"1500m"`},

	"imagePullSecrets": {first: `[{"name": "registry-one"}, {"name": "registry-two"}]`, second: `[{"name": "registry-two"}]`},

	"service.primary.type":                     {first: `"NodePort"`, second: `"LoadBalancer"`},
	"service.primary.annotations":              {first: `{"a": "1", "b": "1"}`, second: `{"b": "2"}`},
	"service.primary.ipFamilyPolicy":           {first: `"PreferDualStack"`, second: `"SingleStack"`},
	"service.primary.ipFamilies":               {base: `{"service": {"primary": {"ipFamilyPolicy": "PreferDualStack"}}}`, first: `["IPv4", "IPv6"]`, second: `["IPv4", "IPv6"]`, unseen: "Kubernetes chooses the same, and the first is for good"},
	"service.primary.externalTrafficPolicy":    {base: `{"service": {"primary": {"type": "NodePort"}}}`, first: `"Local"`, second: `"Cluster"`},
	"service.primary.loadBalancerSourceRanges": {base: `{"service": {"primary": {"type": "LoadBalancer"}}}`, first: `["192.0.2.0/24", "198.51.100.0/24"]`, second: `["192.0.2.0/24"]`},

	"service.replicas.type":                     {first: `"LoadBalancer"`, second: `"NodePort"`},
	"service.replicas.annotations":              {first: `{"a": "1", "b": "1"}`, second: `{"b": "2"}`},
	"service.replicas.ipFamilyPolicy":           {first: `"PreferDualStack"`, second: `"SingleStack"`},
	"service.replicas.ipFamilies":               {base: `{"service": {"replicas": {"ipFamilyPolicy": "PreferDualStack"}}}`, first: `["IPv4", "IPv6"]`, second: `["IPv4", "IPv6"]`, unseen: "Kubernetes chooses the same, and the first is for good"},
	"service.replicas.externalTrafficPolicy":    {base: `{"service": {"replicas": {"type": "NodePort"}}}`, first: `"Local"`, second: `"Cluster"`},
	"service.replicas.loadBalancerSourceRanges": {base: `{"service": {"replicas": {"type": "LoadBalancer"}}}`, first: `["192.0.2.0/24", "198.51.100.0/24"]`, second: `["192.0.2.0/24"]`},

	"networkPolicy.mode": {first: `"None"`, second: `"Managed"`},
	"networkPolicy.clients": {first: `[{"namespaceSelector": {"matchLabels": {"team": "shop"}}}, {"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.1/32"]}}]`,
		second: `[{"podSelector": {}}]`},

	"podMetadata.labels":      {first: `{"a": "1", "b": "1"}`, second: `{"b": "2"}`},
	"podMetadata.annotations": {first: `{"a": "1", "b": "1"}`, second: `{"b": "2"}`},
}
