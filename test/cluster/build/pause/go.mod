// Module pause builds the process that keeps the namespaces of a pod.
module seang.org/operator/test/cluster/build/pause

go 1.26.0
