package resources

import "encoding/json"

// convert turns an API type into its apply configuration: both have the same
// JSON form, so it cannot fail for a value that the API server accepted.
func convert[To any](from any) *To {
	text, err := json.Marshal(from)
	if err != nil {
		panic("encode an API type: " + err.Error())
	}
	to := new(To)
	if err := json.Unmarshal(text, to); err != nil {
		panic("decode an API type: " + err.Error())
	}
	return to
}
