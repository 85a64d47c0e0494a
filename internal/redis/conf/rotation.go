package conf

import (
	"encoding/json"
	"slices"
	"time"
)

// maxHashes bounds the passwords of one user: one in force, and those that still work.
const maxHashes = 4

// Rotation is what is remembered of the change of a password until it is over.
type Rotation struct {
	// Since is when the new password was first given to Redis, or when the system's
	// passwords were made.
	Since time.Time `json:"since"`
	// Pending is the new password, while no other Secret has it.
	Pending string `json:"pending,omitempty"`
}

// RotationSystem is the key of Rotations for the passwords of the operator and of the
// replication. No user has that name.
const RotationSystem = "system"

// Rotations by user. It is stored as JSON.
type Rotations map[string]Rotation

// ParseRotations reads what Encode wrote; what it cannot read is none.
func ParseRotations(text []byte) Rotations {
	rotations := Rotations{}
	if json.Unmarshal(text, &rotations) != nil || rotations == nil {
		return Rotations{}
	}
	return rotations
}

// Encode returns the rotations as JSON; nil if there are none.
func (r Rotations) Encode() []byte {
	if len(r) == 0 {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil // Times and strings encode.
	}
	return text
}

// Progress of a rotation.
type Progress struct {
	Now time.Time
	// Overlap is how long the old password works beside the new one.
	Overlap time.Duration
	// Settled says that every member has the passwords, and all who hand them on.
	Settled bool
}

// NextHashes are the hashes of a user's passwords, the newest first, and whether a
// change of them has begun or ended: a new password is added to those in force, and the
// old ones are dropped once the new one works everywhere and the overlap is over.
func NextHashes(have []string, wanted string, since time.Time, p Progress) (hashes []string, began, ended bool) {
	switch {
	case len(have) == 0:
		return []string{wanted}, false, false
	case have[0] != wanted:
		rest := slices.DeleteFunc(slices.Clone(have), func(hash string) bool { return hash == wanted })
		return append([]string{wanted}, rest[:min(len(rest), maxHashes-1)]...), true, false
	case len(have) > 1 && p.Settled && p.Now.Sub(since) >= p.Overlap:
		return have[:1], false, true
	}
	return have, false, false
}
