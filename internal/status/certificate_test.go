package status

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"seang.org/operator/api/v1alpha1"
)

// served is a certificate that expires in a while, of which a person hears a day before.
func served(left time.Duration) func(*Input) {
	return func(in *Input) {
		in.Now = noon
		in.CertificateExpires = noon.Add(left)
		in.CertificateWarnAt = in.CertificateExpires.Add(-24 * time.Hour)
	}
}

func TestCertificateExpiring(t *testing.T) {
	testCondition(t, v1alpha1.ConditionCertificateExpiring, map[string]conditionTest{
		"it is valid for long":  {input(served(48 * time.Hour)), metav1.ConditionFalse, v1alpha1.ReasonCertificateValid},
		"it was not renewed":    {input(served(time.Hour)), metav1.ConditionTrue, v1alpha1.ReasonCertificateNotRenewed},
		"it has expired":        {input(served(-time.Hour)), metav1.ConditionTrue, v1alpha1.ReasonCertificateExpired},
		"the spec is rejected":  {input(served(time.Hour), rejected), metav1.ConditionTrue, v1alpha1.ReasonCertificateNotRenewed},
		"nothing was looked at": {input(served(time.Hour), unseen), metav1.ConditionTrue, v1alpha1.ReasonCertificateNotRenewed},
	})
}

func TestACertificateThatIsNoMoreHasNoCondition(t *testing.T) {
	for name, c := range map[string]struct {
		in    Input
		there bool
	}{
		"without TLS":           {input(), false},
		"nothing was looked at": {input(unseen), true},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Cluster = cluster(was(v1alpha1.ConditionCertificateExpiring, metav1.ConditionFalse))
			if got := meta.FindStatusCondition(Compute(c.in).Conditions, v1alpha1.ConditionCertificateExpiring); (got != nil) != c.there {
				t.Errorf("the condition is %v", got)
			}
		})
	}
}
