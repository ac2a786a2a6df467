// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"sync"

	"libdist.example/dist/internal/cdist"
)

// A tensor of libdist's memory has an owner, which calls hold while they use the tensor, and refuse where it is closed.
// A slice is invisible: Go's collector does not see that it leads into C's memory. So what a program may keep is either
// a copy in memory of Go's (Read, Value.Tensor, Value.Shard), or there for the time of one function (View, the arguments
// of functions), or a variable's, which the collector does not end once a program has looked into it.

// borrow calls fn with the owner of tensors that are there for the time of the call.
func borrow(fn func(owner *object) error) error {
	owner := &object{}
	defer owner.close()
	return fn(owner)
}

// windows has what tensors of a variable's memory share: a reference to that memory, under the variable's handle. While
// it is here it ends with nothing; a closed variable's ends with the last tensor that has it.
var windows sync.Map // int64 to *object

// orphans are the windows of variables that were forgotten: slices may lead into them.
var orphans sync.Map // *object to nil

// windowOf is the window of a variable.
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

// shutWindow ends calls on tensors of a variable that is being closed.
func shutWindow(variable int64) {
	if window, ok := windows.LoadAndDelete(variable); ok {
		window.(*object).close()
	}
}

// orphan is shutWindow where the collector found what the variable belonged to: tensors of it go on.
func orphan(variable int64) {
	if window, ok := windows.LoadAndDelete(variable); ok {
		orphans.Store(window, nil)
	}
}

// closeVariable ends a variable that the program closes.
func closeVariable(variable int64) {
	shutWindow(variable)
	cdist.Dist_variable_destroy(variable)
}

// forgetVariable ends one that the collector has found.
func forgetVariable(variable int64) {
	orphan(variable)
	cdist.Dist_variable_destroy(variable)
}
