package certificate

import (
	"bytes"
	"encoding/pem"
)

// Next is the pair that members are to have next on the way from one to another, so
// that at no moment a member or an application meets a certificate whose CA it does not
// trust: first both CAs, then the new certificate, then the new CA alone. Deployed says
// that every member has the present pair, and told that applications had the time to
// learn of it: a change of CA waits for that, before either of its last two steps.
func Next(present, wanted Pair, deployed, told bool) Pair {
	switch {
	case present.Empty():
		return wanted
	case !trusts(present.CA, wanted.CA):
		return Pair{Certificate: present.Certificate, Key: present.Key, CA: join(present.CA, wanted.CA)}
	case !deployed, !told && !trusts(wanted.CA, present.CA):
		return present
	case !bytes.Equal(present.Certificate, wanted.Certificate) || !bytes.Equal(present.Key, wanted.Key):
		return Pair{Certificate: wanted.Certificate, Key: wanted.Key, CA: present.CA}
	}
	return wanted
}

// trusts says that a bundle has every CA of another.
func trusts(bundle, other []byte) bool {
	have := blocks(bundle)
	for der := range blocks(other) {
		if !have[der] {
			return false
		}
	}
	return true
}

// join is the first bundle with what only the second has added.
func join(bundle, other []byte) []byte {
	have := blocks(bundle)
	joined := append(bytes.TrimRight(bytes.Clone(bundle), "\n"), '\n')
	for block, rest := pem.Decode(other); block != nil; block, rest = pem.Decode(rest) {
		if !have[string(block.Bytes)] {
			joined = append(joined, pem.EncodeToMemory(block)...)
		}
	}
	return joined
}

func blocks(bundle []byte) map[string]bool {
	all := map[string]bool{}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		all[string(block.Bytes)] = true
	}
	return all
}
