package kubeapi

// Where the operator is, as config/default installs it.
const (
	OperatorNamespace  = "redis-operator-system"
	OperatorDeployment = "redis-operator-controller-manager"
	OperatorUser       = "system:serviceaccount:" + OperatorNamespace + ":" + OperatorDeployment
)
