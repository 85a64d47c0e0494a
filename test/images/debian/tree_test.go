package debian

import "testing"

func TestRegular(t *testing.T) {
	tree := Tree{
		"usr/lib/x86_64-linux-gnu/ld-2.so": {Data: []byte("loader")},
		"usr/lib64/ld.so":                  {Link: "/lib/x86_64-linux-gnu/ld-2.so"},
		"usr/bin/sh":                       {Link: "dash"},
		"usr/bin/dash":                     {Data: []byte("shell")},
		"usr/bin/loop":                     {Link: "loop"},
		"usr/bin/dangling":                 {Link: "../gone"},
	}
	tests := map[string]struct {
		path   string
		want   string
		wantOK bool
	}{
		"An absolute link leads into the merged tree": {path: "/lib64/ld.so", want: "loader", wantOK: true},
		"A relative link leads on from its directory": {path: "./bin/sh", want: "shell", wantOK: true},
		"A loop ends":                          {path: "usr/bin/loop"},
		"A link to nothing leads to nothing":   {path: "usr/bin/dangling"},
		"What no package has is not there":     {path: "usr/bin/absent"},
		"A regular file is its own resolution": {path: "/usr/bin/dash", want: "shell", wantOK: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file, ok := tree.Regular(test.path)
			if ok != test.wantOK || string(file.Data) != test.want {
				t.Errorf("Regular(%q) = %q, %t, want %q, %t", test.path, file.Data, ok, test.want, test.wantOK)
			}
		})
	}
}
