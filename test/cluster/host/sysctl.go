package host

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"seang.org/operator/test/cluster/layout"
)

// kubeletSettings are the kernel settings of the whole machine that a kubelet
// changes at its start.
var kubeletSettings = []string{
	"/proc/sys/vm/overcommit_memory",
	"/proc/sys/vm/panic_on_oom",
	"/proc/sys/kernel/panic",
	"/proc/sys/kernel/panic_on_oops",
	"/proc/sys/kernel/keys/root_maxkeys",
	"/proc/sys/kernel/keys/root_maxbytes",
}

// SaveKernelSettings records the settings that kubelets will change, unless the
// file exists: a second cluster must not take the first one's for the machine's.
func SaveKernelSettings(file string) error {
	if exists(file) {
		return nil
	}
	values := map[string]string{}
	for _, setting := range kubeletSettings {
		if value, err := os.ReadFile(setting); err == nil {
			values[setting] = strings.TrimSpace(string(value))
		}
	}
	data, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("encode the kernel settings: %w", err)
	}
	return layout.WriteFile(file, data, 0o600)
}

// RestoreKernelSettings undoes what kubelets have changed and removes the file.
func RestoreKernelSettings(file string) error {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the saved kernel settings: %w", err)
	}
	var values map[string]string
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("parse the saved kernel settings in %s: %w", file, err)
	}
	for setting, value := range values {
		current, err := os.ReadFile(setting)
		if err == nil && strings.TrimSpace(string(current)) == value {
			continue
		}
		if err := os.WriteFile(setting, []byte(value), 0); err != nil {
			return fmt.Errorf("restore %s to %s: %w", setting, value, err)
		}
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("remove the saved kernel settings: %w", err)
	}
	return nil
}
