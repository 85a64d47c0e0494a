package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSources(t *testing.T) {
	tests := map[string]struct {
		files   map[string]string
		want    string
		wantErr string
	}{
		"A deb822 entry keeps its mirrors and key and changes its suites": {
			files: map[string]string{"sources.list.d/debian.sources": `Types: deb deb-src
# a comment
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security/
Suites: bookworm-security
Components: main
`},
			want: `Types: deb
URIs: http://mirror.test/debian
Suites: trixie trixie-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security/
Suites: trixie-security
Components: main

`,
		},
		"A one-line entry keeps the options that matter": {
			files: map[string]string{"sources.list": `# old style
deb [arch=amd64 signed-by=/key.gpg trusted=yes] mirror+file:/etc/apt/mirrors/debian.list bookworm main # here
deb-src http://mirror.test/debian bookworm main
`},
			want: `Types: deb
URIs: mirror+file:/etc/apt/mirrors/debian.list
Suites: trixie
Components: main
Signed-By: /key.gpg
Trusted: yes

`,
		},
		"Other archives, disabled entries and ignored files are left out": {
			files: map[string]string{
				"sources.list":                      "deb http://other.test/deb bookworm main\ndeb http://third.test/linux/debian bookworm stable\n",
				"sources.list.d/off.sources":        "Types: deb\nEnabled: no\nURIs: http://mirror.test/debian\nSuites: bookworm\nComponents: main\n",
				"sources.list.d/debian.sources.bak": "Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm\nComponents: main\n",
			},
			wantErr: `is Debian's archive with release "bookworm"`,
		},
		"An embedded key stays whole": {
			files: map[string]string{"sources.list.d/debian.sources": "Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abcd\n -----END PGP PUBLIC KEY BLOCK-----\n"},
			want:  "Types: deb\nURIs: http://mirror.test/debian\nSuites: trixie\nComponents: main\nSigned-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abcd\n -----END PGP PUBLIC KEY BLOCK-----\n\n",
		},
		"An entry without a suite is an error that names the file": {
			files:   map[string]string{"sources.list": "deb http://mirror.test/debian\n"},
			wantErr: "sources.list: \"deb http://mirror.test/debian\" has no URI and suite",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			etc := t.TempDir()
			for file, content := range test.files {
				file = filepath.Join(etc, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Sources(etc, "bookworm", "trixie")
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("Sources() error = %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("Sources() differs (-want +got):\n%s", diff)
			}
		})
	}
}
