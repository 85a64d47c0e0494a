package audit

import (
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Unused are the permissions among rules that a user made no use of: verb resource.group.
func Unused(rules []rbacv1.PolicyRule, requests []Request, user string) []string {
	used := map[string]bool{}
	for _, r := range requests {
		if r.User != user {
			continue
		}
		resource := r.Resource
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		used[permission(r.Verb, resource, r.Group)] = true
		// To apply what is not there needs both.
		if r.Verb == "patch" && r.Code == http.StatusCreated {
			used[permission("create", resource, r.Group)] = true
		}
	}
	var unused []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if name := permission(verb, resource, group); !used[name] {
						unused = append(unused, name)
					}
				}
			}
		}
	}
	slices.Sort(unused)
	return slices.Compact(unused)
}

func permission(verb, resource, group string) string {
	return strings.TrimSuffix(verb+" "+resource+"."+group, ".")
}
