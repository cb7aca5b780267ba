package provider

import "reflect"

// Types returns the configuration types of all providers by kind, for editors' schemas.
func Types() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, p := range table {
		types[p.kind] = reflect.TypeOf(p.config()).Elem()
	}
	return types
}
