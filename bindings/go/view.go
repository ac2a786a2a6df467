// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"sync"

	"libdist.example/dist/internal/cdist"
)

// A tensor in libdist's memory has an owner. Calls hold it while they use the tensor, and fail if it is closed. Go's
// garbage collector does not see that a slice refers to C memory. So a slice that a program gets is either a copy in Go
// memory (Read, Value.Tensor, Value.Shard), or valid during one function (View, arguments of functions), or a
// variable's memory, and the collector never closes a variable whose memory a program has requested.

// borrow calls fn with the owner of tensors that are valid during the call.
func borrow(fn func(owner *object) error) error {
	owner := &object{}
	defer owner.close()
	return fn(owner)
}

// windows maps the handle of a variable to a reference to its memory, which all tensors with that memory
// share. While the reference is in the map, nothing ends it; that of a closed variable ends with the last
// tensor that uses it.
var windows sync.Map // int64 to *object

// orphans are the windows of variables that have become unreachable, because slices may still refer to them.
var orphans sync.Map // *object to nil

// windowOf returns the window of a variable.
func windowOf(variable int64) (*object, error) {
	if known, ok := windows.Load(variable); ok {
		return known.(*object), nil
	}
	var reference int64
	if err := cdist.Dist_value_create_variable(variable, &reference); err != nil {
		return nil, fromNative(err)
	}
	window := &object{lazy: true}
	window.open(reference, cdist.Dist_value_release, nil)
	known, _ := windows.LoadOrStore(variable, window) // one that came second ends unused
	return known.(*object), nil
}

// shutWindow makes calls reject tensors of a variable that is being closed.
func shutWindow(variable int64) {
	if window, ok := windows.LoadAndDelete(variable); ok {
		window.(*object).close()
	}
}

// orphan is shutWindow for a variable whose owner has become unreachable: its tensors stay valid.
func orphan(variable int64) {
	if window, ok := windows.LoadAndDelete(variable); ok {
		orphans.Store(window, nil)
	}
}

// closeVariable destroys a variable that the program closes.
func closeVariable(variable int64) {
	shutWindow(variable)
	variableStrategies.Delete(variable)
	cdist.Dist_variable_destroy(variable)
}

// forgetVariable destroys a variable that has become unreachable.
func forgetVariable(variable int64) {
	orphan(variable)
	variableStrategies.Delete(variable)
	cdist.Dist_variable_destroy(variable)
}
