package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"seang.org/operator/internal/testkit/apiserver"
)

// admission is a spec, or a part of one that replaces fields of the minimal
// spec, and the message with which it is refused; empty if it is accepted.
type admission struct {
	base string // minimalSpec if empty
	with string
	want string
}

func checkAdmission(t *testing.T, tests map[string]admission) {
	t.Helper()
	server := apiserver.Get(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			base := test.base
			if base == "" {
				base = minimalSpec
			}
			object := redisCluster(t, "default", "cache", overlay(t, base, test.with))
			wantRefusal(t, dryCreate(t, server, object), test.want)
		})
	}
}

func TestRequiredFields(t *testing.T) {
	checkAdmission(t, map[string]admission{
		"the three required fields are enough": {},
		"replicas is required":                 {with: "replicas: null", want: "spec.replicas: Required value"},
		"memoryLimit is required":              {with: "memoryLimit: null", want: "spec.memoryLimit: Required value"},
		"enablePersistence is required":        {with: "enablePersistence: null", want: "spec.enablePersistence: Required value"},
		"an unknown field is refused":          {with: "replcas: 1", want: `unknown field "spec.replcas"`},
	})
}

func TestSpecIsRequired(t *testing.T) {
	server := apiserver.Get(t)
	object := redisCluster(t, "default", "cache", minimalSpec)
	delete(object.Object, "spec")
	wantRefusal(t, dryCreate(t, server, object), "spec: Required value")
}

func TestReplicas(t *testing.T) {
	checkAdmission(t, map[string]admission{
		"one is the least":       {with: "replicas: 1"},
		"ten is the most":        {with: "replicas: 10"},
		"none is refused":        {with: "replicas: 0", want: "spec.replicas in body should be greater than or equal to 1"},
		"a negative is refused":  {with: "replicas: -1", want: "spec.replicas in body should be greater than or equal to 1"},
		"eleven is refused":      {with: "replicas: 11", want: "spec.replicas in body should be less than or equal to 10"},
		"more than 32 bits":      {with: "replicas: 4294967297", want: "spec.replicas"},
		"a fraction is refused":  {with: "replicas: 1.5", want: "spec.replicas"},
		"a string is refused":    {with: `replicas: "2"`, want: "spec.replicas"},
		"a quantity is refused":  {with: "replicas: 1k", want: "spec.replicas"},
		"an exponent is a float": {with: "replicas: 1e1"},
	})
}

func TestMemoryLimit(t *testing.T) {
	const (
		tooSmall = "memoryLimit must be at least 64Mi"
		tooBig   = "memoryLimit must be at most 1Ti"
		invalid  = "spec.memoryLimit"
	)
	checkAdmission(t, map[string]admission{
		"64Mi is the least":               {with: "memoryLimit: 64Mi"},
		"1Ti is the most":                 {with: "memoryLimit: 1Ti"},
		"a decimal suffix":                {with: "memoryLimit: 500M"},
		"a fraction with a suffix":        {with: "memoryLimit: 0.5Gi"},
		"plain bytes as a number":         {with: "memoryLimit: 268435456"},
		"plain bytes as a string":         {with: `memoryLimit: "268435456"`},
		"an exponent":                     {with: `memoryLimit: "3e8"`},
		"one byte too few":                {with: "memoryLimit: 67108863", want: tooSmall},
		"63Mi":                            {with: "memoryLimit: 63Mi", want: tooSmall},
		"an exponent that is too small":   {with: `memoryLimit: "1e3"`, want: tooSmall},
		"milli-bytes":                     {with: "memoryLimit: 256m", want: tooSmall},
		"zero":                            {with: `memoryLimit: "0"`, want: tooSmall},
		"negative":                        {with: "memoryLimit: -1Gi", want: tooSmall},
		"a negative number":               {with: "memoryLimit: -1", want: tooSmall},
		"one byte too many":               {with: "memoryLimit: 1099511627777", want: tooBig},
		"2Ti":                             {with: "memoryLimit: 2Ti", want: tooBig},
		"more than 64 bits":               {with: "memoryLimit: 100Ei", want: tooBig},
		"an exponent beyond all machines": {with: `memoryLimit: "1e400"`, want: invalid},
		"garbage":                         {with: "memoryLimit: lots", want: invalid},
		"a unit with B":                   {with: "memoryLimit: 256MB", want: invalid},
		"a space before the unit":         {with: `memoryLimit: "256 Mi"`, want: invalid},
		"empty":                           {with: `memoryLimit: ""`, want: invalid},
		"not a number":                    {with: `memoryLimit: "NaN"`, want: invalid},
		"a float":                         {with: "memoryLimit: 268435456.5", want: invalid},
		"a boolean":                       {with: "memoryLimit: true", want: invalid},
	})
}

func TestImage(t *testing.T) {
	const reference = "image must be an image reference"
	checkAdmission(t, map[string]admission{
		"a tag":                    {with: "image: redis:8.0"},
		"a registry and a port":    {with: "image: registry.example.com:5000/team/valkey:8.1"},
		"a digest":                 {with: "image: redis@sha256:" + strings.Repeat("a", 64)},
		"empty":                    {with: `image: ""`, want: "spec.image in body should be at least 1 chars long"},
		"a space":                  {with: `image: "redis 8"`, want: reference},
		"a shell command":          {with: `image: "redis;reboot"`, want: reference},
		"a line break at the end":  {with: `image: "redis:8.0\n"`, want: reference},
		"an option":                {with: `image: "--privileged"`, want: reference},
		"more than 512 characters": {with: "image: " + strings.Repeat("a", 513), want: "spec.image"},
	})
}

func TestStorage(t *testing.T) {
	const (
		noEffect = "storage.size has no effect without enablePersistence"
		tooSmall = "storage.size must be at least 64Mi"
		tooBig   = "storage.size must be at most 64Ti"
	)
	checkAdmission(t, map[string]admission{
		"size with persistence":               {base: persistentSpec, with: "storage: {size: 1Gi}"},
		"64Mi is the least":                   {base: persistentSpec, with: "storage: {size: 64Mi}"},
		"64Ti is the most":                    {base: persistentSpec, with: "storage: {size: 64Ti}"},
		"size as a number":                    {base: persistentSpec, with: "storage: {size: 1073741824}"},
		"size without persistence":            {with: "storage: {size: 1Gi}", want: noEffect},
		"a policy without persistence":        {with: "storage: {reclaimPolicy: Retain}"},
		"a class without persistence":         {with: "storage: {storageClassName: fast}"},
		"63Mi":                                {base: persistentSpec, with: "storage: {size: 63Mi}", want: tooSmall},
		"negative":                            {base: persistentSpec, with: "storage: {size: -1Gi}", want: tooSmall},
		"zero":                                {base: persistentSpec, with: "storage: {size: 0}", want: tooSmall},
		"1e3":                                 {base: persistentSpec, with: `storage: {size: "1e3"}`, want: tooSmall},
		"65Ti":                                {base: persistentSpec, with: "storage: {size: 65Ti}", want: tooBig},
		"more than 64 bits":                   {base: persistentSpec, with: "storage: {size: 100Ei}", want: tooBig},
		"garbage":                             {base: persistentSpec, with: "storage: {size: big}", want: "spec.storage.size"},
		"policy Delete":                       {base: persistentSpec, with: "storage: {reclaimPolicy: Delete}"},
		"another policy":                      {base: persistentSpec, with: "storage: {reclaimPolicy: Recycle}", want: `Unsupported value: "Recycle": supported values: "Delete", "Retain"`},
		"a class with a dot":                  {base: persistentSpec, with: "storage: {storageClassName: fast.ssd-2}"},
		"an empty class":                      {base: persistentSpec, with: `storage: {storageClassName: ""}`, want: "should be at least 1 chars long"},
		"a class that no object can be":       {base: persistentSpec, with: "storage: {storageClassName: a/b}", want: "storage.storageClassName must be the name of a StorageClass"},
		"a class of more than 253 characters": {base: persistentSpec, with: "storage: {storageClassName: " + strings.Repeat("a", 254) + "}", want: "spec.storage.storageClassName"},
	})
}

func TestConfig(t *testing.T) {
	const (
		names  = "config names must be redis.conf directives in lower case"
		values = "config values must be one line without control characters"
	)
	many := func(n int) string {
		var config strings.Builder
		config.WriteString("config:\n")
		for i := range n {
			fmt.Fprintf(&config, "  directive-%d: value\n", i)
		}
		return config.String()
	}
	checkAdmission(t, map[string]admission{
		"directives":                 {with: "config: {maxmemory-policy: allkeys-lru, hash-max-listpack-entries: '64'}"},
		"an empty value":             {with: `config: {notify-keyspace-events: ""}`},
		"spaces and quotes":          {with: `config: {oom-score-adj-values: '"0" 200 800'}`},
		"64 of them":                 {with: many(64)},
		"65 of them":                 {with: many(65), want: "spec.config"},
		"a value of 1024":            {with: "config: {a: " + strings.Repeat("v", 1024) + "}"},
		"a value of 1025":            {with: "config: {a: " + strings.Repeat("v", 1025) + "}", want: "spec.config.a: Too long"},
		"a name of 64":               {with: "config: {" + strings.Repeat("n", 64) + ": v}"},
		"a name of 65":               {with: "config: {" + strings.Repeat("n", 65) + ": v}", want: names},
		"upper case":                 {with: "config: {MaxMemory-Policy: v}", want: names},
		"a space in a name":          {with: `config: {"requirepass x": v}`, want: names},
		"a line break in a name":     {with: `config: {"a\nb": v}`, want: names},
		"a line break after a name":  {with: `config: {"a\n": v}`, want: names},
		"a comment as a name":        {with: `config: {"#a": v}`, want: names},
		"an empty name":              {with: `config: {"": v}`, want: names},
		"a second line in a value":   {with: `config: {a: "v\nrequirepass x"}`, want: values},
		"a carriage return":          {with: `config: {a: "v\rrequirepass x"}`, want: values},
		"a NUL":                      {with: `config: {a: "v\0x"}`, want: values},
		"a number where text is due": {with: "config: {hz: 10}", want: "spec.config.hz"},
		"a list where text is due":   {with: "config: {save: [1, 2]}", want: "spec.config.save"},
	})
}

func TestAuth(t *testing.T) {
	const name = "auth.secretName must be the name of a Secret"
	checkAdmission(t, map[string]admission{
		"a Secret":                    {with: "auth: {secretName: my-password.v2}"},
		"nothing set":                 {with: "auth: {}"},
		"empty":                       {with: `auth: {secretName: ""}`, want: "should be at least 1 chars long"},
		"another namespace":           {with: "auth: {secretName: kube-system/token}", want: name},
		"a path":                      {with: "auth: {secretName: ../x}", want: name},
		"upper case":                  {with: "auth: {secretName: MyPassword}", want: name},
		"more than 253 characters":    {with: "auth: {secretName: " + strings.Repeat("a", 254) + "}", want: "spec.auth.secretName"},
		"the password itself instead": {with: "auth: {password: hunter2}", want: `unknown field "spec.auth.password"`},
	})
}

func TestCPU(t *testing.T) {
	const (
		order   = "resources.cpu.request must not exceed resources.cpu.limit"
		request = "resources.cpu.request must be more than zero"
		limit   = "resources.cpu.limit must be more than zero"
	)
	checkAdmission(t, map[string]admission{
		"a request":                     {with: "resources: {cpu: {request: 250m}}"},
		"a limit":                       {with: `resources: {cpu: {limit: "1.5"}}`},
		"a request below the limit":     {with: "resources: {cpu: {request: 500m, limit: 1}}"},
		"a request equal to limit":      {with: `resources: {cpu: {request: 1000m, limit: "1"}}`},
		"a request above the limit":     {with: "resources: {cpu: {request: 1001m, limit: 1}}", want: order},
		"a request of zero":             {with: "resources: {cpu: {request: 0}}", want: request},
		"a negative request":            {with: "resources: {cpu: {request: -1}}", want: request},
		"a limit of zero":               {with: "resources: {cpu: {limit: 0m}}", want: limit},
		"a negative limit":              {with: `resources: {cpu: {limit: "-500m"}}`, want: limit},
		"garbage as a request":          {with: "resources: {cpu: {request: much}}", want: "spec.resources.cpu.request"},
		"garbage as a limit":            {with: "resources: {cpu: {limit: 1core}}", want: "spec.resources.cpu.limit"},
		"memory has a field of its own": {with: "resources: {memory: 1Gi}", want: `unknown field "spec.resources.memory"`},
	})
}

func TestScheduling(t *testing.T) {
	checkAdmission(t, map[string]admission{
		"all of it": {with: `
scheduling:
  nodeSelector: {pool: data}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}
  tolerations: [{key: data, operator: Exists, effect: NoSchedule}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]
  priorityClassName: important
`},
		"a priority class that no object can be": {with: "scheduling: {priorityClassName: A B}", want: "scheduling.priorityClassName must be the name of a PriorityClass"},
		"more than 32 tolerations":               {with: "scheduling: {tolerations: [" + strings.Repeat("{key: a},", 33) + "]}", want: "spec.scheduling.tolerations"},
		"more than 8 spread constraints":         {with: "scheduling: {topologySpreadConstraints: [" + strings.Repeat("{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule},", 9) + "]}", want: "spec.scheduling.topologySpreadConstraints"},
		"a spread constraint without a key":      {with: "scheduling: {topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}", want: "topologyKey: Required value"},
		"affinity as text":                       {with: "scheduling: {affinity: anywhere}", want: "spec.scheduling.affinity"},
	})
}

func TestServices(t *testing.T) {
	checkAdmission(t, map[string]admission{
		"ClusterIP":    {with: "service: {primary: {type: ClusterIP}}"},
		"NodePort":     {with: "service: {replicas: {type: NodePort}}"},
		"LoadBalancer": {with: "service: {primary: {type: LoadBalancer, annotations: {a: b}}}"},
		"ExternalName": {with: "service: {primary: {type: ExternalName}}", want: `Unsupported value: "ExternalName"`},
	})
}

func TestPodMetadata(t *testing.T) {
	const (
		labels      = "belong to the operator"
		annotations = "annotations of cache.seang.org/ belong to the operator"
	)
	checkAdmission(t, map[string]admission{
		"labels and annotations":                   {with: "podMetadata: {labels: {team: shop}, annotations: {example.com/a: b}}"},
		"a role label":                             {with: "podMetadata: {labels: {cache.seang.org/role: primary}}", want: labels},
		"an instance label":                        {with: "podMetadata: {labels: {app.kubernetes.io/instance: other}}", want: labels},
		"a pod name label":                         {with: "podMetadata: {labels: {statefulset.kubernetes.io/pod-name: cache-1}}", want: labels},
		"an annotation of the operator":            {with: "podMetadata: {annotations: {cache.seang.org/record: '{}'}}", want: annotations},
		"an annotation that others give a meaning": {with: "podMetadata: {annotations: {app.kubernetes.io/x: z}}"},
	})
}

func TestNames(t *testing.T) {
	const (
		tooLong   = "the name must have at most 50 characters"
		character = "the name must start with a letter and have only lower-case letters, digits and '-'"
	)
	server := apiserver.Get(t)
	tests := map[string]struct{ name, want string }{
		"a word":               {name: "cache"},
		"one letter":           {name: "a"},
		"digits and dashes":    {name: "cache-2--x"},
		"50 characters":        {name: strings.Repeat("a", 50)},
		"51 characters":        {name: strings.Repeat("a", 51), want: tooLong},
		"a dot":                {name: "cache.prod", want: character},
		"a digit first":        {name: "1cache", want: character},
		"a dash at the end":    {name: "cache-", want: "metadata.name"},
		"upper case":           {name: "Cache", want: "metadata.name"},
		"a path":               {name: "../cache", want: "metadata.name"},
		"a newline":            {name: "cache\nx", want: "metadata.name"},
		"more than 253":        {name: strings.Repeat("a", 254), want: "metadata.name"},
		"letters of the world": {name: "caché", want: "metadata.name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t, dryCreate(t, server, redisCluster(t, "default", test.name, minimalSpec)), test.want)
		})
	}
}

func TestDurability(t *testing.T) {
	const tooMany = "durability.minReplicas (1 unless set) must be less than replicas"
	checkAdmission(t, map[string]admission{
		"the default mode":                             {with: "durability: {mode: Default}"},
		"strict, with a replica to spare":              {with: "{replicas: 2, durability: {mode: Strict}}"},
		"strict with two of three":                     {with: "{replicas: 3, durability: {mode: Strict, minReplicas: 2}}"},
		"strict with the only replica":                 {with: "{replicas: 1, durability: {mode: Strict}}", want: tooMany},
		"strict with all replicas":                     {with: "{replicas: 3, durability: {mode: Strict, minReplicas: 3}}", want: tooMany},
		"strict with none":                             {with: "{replicas: 2, durability: {mode: Strict, minReplicas: 0}}", want: "greater than or equal to 1"},
		"a number that the default mode has no use of": {with: "{replicas: 3, durability: {mode: Default, minReplicas: 2}}", want: "has an effect with the mode Strict only"},
		"without a mode it is the default":             {with: "durability: {}"},
		"a number without a mode":                      {with: "{replicas: 3, durability: {minReplicas: 2}}", want: "has an effect with the mode Strict only"},
		"another mode":                                 {with: "durability: {mode: Sometimes}", want: "Unsupported value"},
	})
}
