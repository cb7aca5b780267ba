package traffic

import "reflect"

// Types are the configurations of all routers, by kind, for the schemas that
// editors check documents by. A list stands for a mapping or a list of them.
func Types() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, r := range routers() {
		types[r.kind] = reflect.TypeOf(r.config()).Elem()
	}
	return types
}
