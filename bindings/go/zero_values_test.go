// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"testing"

	"libdist.example/dist"
)

// TestZeroValuesAndNil calls every method of every object with nil and zero arguments. An object that libdist has not
// made may be refused or do nothing, but it must not crash the program.
func TestZeroValuesAndNil(t *testing.T) {
	for _, object := range []any{
		&dist.Batch{}, &dist.Batcher{}, &dist.Budget{}, &dist.Checkpoint{}, &dist.Closure{}, &dist.ClusterResolver{},
		&dist.ClusterSpec{}, &dist.Coordinator{}, &dist.CrossDevice{}, &dist.Dataset{}, &dist.DeviceAssignment{},
		&dist.Group{}, &dist.Item{}, &dist.Iterator{}, &dist.Metric{}, &dist.Network{}, &dist.PreemptionHandler{},
		&dist.RPCClient{}, &dist.RPCServer{}, &dist.RemoteValue{}, &dist.Replica{}, &dist.Request{}, &dist.Server{},
		&dist.Strategy{}, &dist.Topology{}, &dist.Value{}, &dist.Variable{}, &dist.Versions[int]{}, &dist.Work{},
	} {
		pointer := reflect.TypeOf(object)
		for i := range pointer.NumMethod() {
			name := fmt.Sprintf("%s.%s", pointer.Elem().Name(), pointer.Method(i).Name)
			withoutCrash(t, "a zero "+name, reflect.New(pointer.Elem()).Method(i))
			withoutCrash(t, "a nil "+name, reflect.Zero(pointer).Method(i))
		}
	}
}

func withoutCrash(t *testing.T, name string, method reflect.Value) {
	t.Helper()
	defer func() {
		if crash, ok := recover().(runtime.Error); ok {
			t.Errorf("%s: %v\n%s", name, crash, debug.Stack())
		}
	}()
	var arguments []reflect.Value
	for i := range method.Type().NumIn() {
		arguments = append(arguments, reflect.Zero(method.Type().In(i)))
	}
	if method.Type().IsVariadic() {
		method.CallSlice(arguments)
	} else {
		method.Call(arguments)
	}
}
