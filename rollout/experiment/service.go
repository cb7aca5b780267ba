package experiment

import (
	"cmp"
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// Ports returns the stable Service's ports, else the containers', without node ports.
func (t Template) Ports() (ports []any) {
	if c := t.Spec.Canary; c != nil && (c.StableService != "" || c.PingPong != nil) {
		ref := rollout.Ref{Kind: "Service", Namespace: t.Spec.Workload.Namespace, Name: c.StableService}
		if c.PingPong != nil {
			ref.Name = c.PingPong.PingService
		}
		for _, o := range t.Others {
			if ports, ok := o.Copy().Map("spec")["ports"].([]any); ok && o.Ref() == ref && len(ports) > 0 {
				for _, p := range ports {
					if port, ok := p.(map[string]any); ok {
						delete(port, "nodePort")
					}
				}
				return ports
			}
		}
	}
	containers, _ := t.From.Map("spec", "template", "spec")["containers"].([]any)
	seen := map[string]bool{}
	for _, c := range containers {
		container, _ := c.(map[string]any)
		declared, _ := container["ports"].([]any)
		for _, p := range declared {
			port, _ := p.(map[string]any)
			number, ok := port["containerPort"].(int64)
			if !ok {
				continue
			}
			protocol, _ := port["protocol"].(string)
			protocol = cmp.Or(protocol, "TCP")
			name, _ := port["name"].(string)
			if name == "" || seen[name] {
				name = fmt.Sprintf("port-%d", number)
			}
			if key := fmt.Sprint(protocol, number); !seen[key] {
				seen[key], seen[name] = true, true
				ports = append(ports, map[string]any{"name": name, "port": number, "targetPort": number, "protocol": protocol})
			}
		}
	}
	return ports
}
