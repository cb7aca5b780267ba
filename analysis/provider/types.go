package provider

import "reflect"

// Types are the configurations of all providers, by kind, for the schemas that editors check documents by.
func Types() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, p := range table {
		types[p.kind] = reflect.TypeOf(p.config()).Elem()
	}
	return types
}
