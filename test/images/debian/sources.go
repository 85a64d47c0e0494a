// Package debian gets packages of a Debian release that need not be this
// machine's: with sources derived from the machine's own, in apt directories of
// its own. The machine's configuration and package database stay as they are.
package debian

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"pault.ag/go/debian/control"
)

// Sources returns the machine's own Debian sources with their suites changed
// from the machine's release to another, in apt's deb822 format. Mirror and
// signing key stay; what is not Debian's own archive is left out.
//
// etc is apt's configuration directory, from and to are code names of releases.
func Sources(etc, from, to string) ([]byte, error) {
	entries, err := readSources(etc)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, entry := range entries {
		suites := moved(entry.Values["Suites"], from, to)
		if len(suites) == 0 || !archive(entry) {
			continue
		}
		entry.Set("Types", "deb")
		entry.Set("Suites", strings.Join(suites, " "))
		if key := strings.TrimSpace(entry.Values["Signed-By"]); strings.Contains(key, "\n") { // not a path but the key
			entry.Set("Signed-By", "\n"+key)
		}
		if err := entry.WriteTo(&out); err != nil {
			return nil, fmt.Errorf("write the apt source of %s: %w", to, err)
		}
		out.WriteString("\n")
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("no apt source in %s is Debian's archive with release %q: add one (Types: deb, Suites: %s, Components: main)", etc, from, from)
	}
	return out.Bytes(), nil
}

// archive tells whether an entry is for Debian's packages or its security fixes.
// Others may have suites of the same name, with packages of the same name.
func archive(entry control.Paragraph) bool {
	if !slices.Contains(strings.Fields(entry.Values["Types"]), "deb") || entry.Values["Enabled"] == "no" {
		return false
	}
	if !slices.Contains(strings.Fields(entry.Values["Components"]), "main") {
		return false
	}
	for uri := range strings.FieldsSeq(entry.Values["URIs"]) {
		// A mirror list is named after the archive: mirror+file:/…/debian.list
		switch strings.TrimSuffix(path.Base(uri), ".list") {
		case "debian", "debian-security":
		default:
			return false
		}
	}
	return true
}

// moved maps each of a release's suites, its updates and security fixes to the
// other release's; backports and the like are dropped.
func moved(suites, from, to string) []string {
	var out []string
	for suite := range strings.FieldsSeq(suites) {
		rest, ok := strings.CutPrefix(suite, from)
		if ok && slices.Contains([]string{"", "-updates", "-security"}, rest) {
			out = append(out, to+rest)
		}
	}
	return out
}

func readSources(etc string) ([]control.Paragraph, error) {
	lists, err := filepath.Glob(filepath.Join(etc, "sources.list.d", "*"))
	if err != nil {
		return nil, fmt.Errorf("list the apt sources in %s: %w", etc, err)
	}
	var entries []control.Paragraph
	for _, file := range append([]string{filepath.Join(etc, "sources.list")}, lists...) {
		read := readDeb822
		switch filepath.Ext(file) {
		case ".sources":
		case ".list":
			read = readOneLine
		default: // apt ignores it, too
			continue
		}
		content, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read apt sources: %w", err)
		}
		found, err := read(content)
		if err != nil {
			return nil, fmt.Errorf("parse the apt sources in %s: %w", file, err)
		}
		entries = append(entries, found...)
	}
	return entries, nil
}

func readDeb822(content []byte) ([]control.Paragraph, error) {
	reader, err := control.NewParagraphReader(bytes.NewReader(content), nil)
	if err != nil {
		return nil, err
	}
	return reader.All()
}

// optionFields names the deb822 field of each option of a one-line entry that
// matters for fetching packages.
var optionFields = map[string]string{"signed-by": "Signed-By", "trusted": "Trusted", "check-valid-until": "Check-Valid-Until"}

// readOneLine reads entries like deb [signed-by=/key.gpg] URI SUITE COMPONENT….
func readOneLine(content []byte) ([]control.Paragraph, error) {
	var entries []control.Paragraph
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "" {
			continue
		}
		options := ""
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "[") {
			options, rest, _ = strings.Cut(rest[1:], "]")
		}
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			return nil, fmt.Errorf("%q has no URI and suite", lines.Text())
		}
		entry := control.Paragraph{Values: map[string]string{}}
		entry.Set("Types", kind)
		entry.Set("URIs", fields[0])
		entry.Set("Suites", fields[1])
		entry.Set("Components", strings.Join(fields[2:], " "))
		for option := range strings.FieldsSeq(options) {
			key, value, _ := strings.Cut(option, "=")
			if field, ok := optionFields[strings.ToLower(key)]; ok {
				entry.Set(field, strings.ReplaceAll(value, ",", " "))
			}
		}
		entries = append(entries, entry)
	}
	return entries, lines.Err()
}
