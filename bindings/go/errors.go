// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"libdist.example/dist/internal/cdist"
)

// String returns libdist's name of the code, such as "INVALID_ARGUMENT".
func (c Code) String() string { return cdist.Dist_status_name(int32Of(int(c))) }

// Error returns the name of the code with the prefix "dist: ". It makes a Code an error, for [errors.Is].
func (c Code) Error() string { return "dist: " + c.String() }

// An Error is a failure that libdist reports, as a message and as fields.
type Error struct {
	Code       Code
	Message    string     // what failed, what was expected, and what to do
	Worker     int        // worker at fault; 0 in a strategy of one process
	Replica    int        // id of the replica at fault; -1 = none
	Collective Collective // collective in which the failure was noticed
	Group      int        // number of the group of replicas; 0 = all replicas
	Sequence   int64      // number of the collective in this run, from 1; 0 = outside a collective
	Tag        string     // tag of the collective
	Expected   string     // what most replicas, or the one with the lowest id, requested; of an argument, what it must be
	Received   string     // what the replica at fault requested, or that it left or did not arrive; of an argument, what it is
	Hint       string     // how to fix the error
	// LogicalDevice is the logical device of the replica at fault; -1 = the whole replica.
	LogicalDevice int

	// Function is the function or method of this package that failed, and Parameter its argument or option at fault.
	Function, Parameter string

	told  string // the message with the marks of C's names; "": this package made the error
	cause error
}

// Error returns the name of the code and the message, then the cause, then the hint unless the message contains it.
func (e *Error) Error() string {
	text := "dist: " + e.Code.String() + ": " + e.Message
	if e.cause != nil && !strings.Contains(e.Message, e.cause.Error()) {
		text += ": " + e.cause.Error()
	}
	if e.Hint != "" && !strings.Contains(e.Message, e.Hint) {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Is reports whether target is the error's code, so that errors.Is(err, ErrAborted) works.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap returns the error of the context and its cause, if the end of a context caused this error.
func (e *Error) Unwrap() error { return e.cause }

// A PanicError reports a panic in a function of the program that libdist called.
type PanicError struct {
	Replica int    // replica whose function, or whose logical device's function, panicked; -1 = none
	Value   any    // argument of panic
	Stack   []byte // stack trace of the panic
	// LogicalDevice is the logical device whose function panicked; -1 = the replica's own function.
	LogicalDevice int
}

// Error names the replica and the value of the panic. It does not include the stack.
func (p *PanicError) Error() string {
	if p.Replica < 0 {
		return fmt.Sprintf("dist: panic: %v", p.Value)
	}
	if p.LogicalDevice >= 0 {
		return fmt.Sprintf("dist: panic in replica %d, logical device %d: %v", p.Replica, p.LogicalDevice, p.Value)
	}
	return fmt.Sprintf("dist: panic in replica %d: %v", p.Replica, p.Value)
}

// Unwrap returns the value of the panic if it is an error, for example a [runtime.Error].
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Errorf returns an error with a code, for a callback to return. libdist reports the code and the text to the
// peers of the replica. Errors without a code count as [ErrUnknown], except [context.Canceled],
// [context.DeadlineExceeded] and [io.EOF], which count as [ErrCancelled], [ErrDeadlineExceeded] and
// [ErrOutOfRange].
func Errorf(code Code, format string, arguments ...any) error {
	return newError(code, format, arguments...)
}

func newError(code Code, format string, arguments ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, arguments...), Replica: -1, LogicalDevice: -1}
}

// fromNative turns an error of the generated layer into an *Error.
func fromNative(err error) error {
	if err == nil {
		return nil
	}
	status, ok := err.(*cdist.StatusError)
	if !ok {
		return err
	}
	field := strings.Split(status.Record, "\x00")
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(field[i], 10, 64)
		return n
	}
	return &Error{
		Code:       Code(number(0)),
		Worker:     int(number(1)),
		Replica:    int(number(2)),
		Collective: Collective(number(3)),
		Group:      int(number(4)),
		Sequence:   number(5),
		Message:    field[6],
		Tag:        field[7],
		Expected:   field[8],
		Received:   field[9],
		Hint:       field[10],
		Function:   field[12],
		Parameter:  field[13],
		told:       field[14],

		LogicalDevice: int(number(11)),
	}
}

// codeOf returns the status by which libdist learns of an error that a callback returned.
func codeOf(err error) Code {
	var libdist *Error
	var code Code
	switch {
	case errors.As(err, &libdist):
		code = libdist.Code
	case errors.As(err, &code):
	case errors.Is(err, context.Canceled):
		code = ErrCancelled
	case errors.Is(err, context.DeadlineExceeded):
		code = ErrDeadlineExceeded
	case errors.Is(err, io.EOF):
		code = ErrOutOfRange
	}
	if code == 0 {
		code = ErrUnknown
	}
	return code
}

// wordsOf returns the text of an error for libdist and peers: the core's original message if the error has
// one. A NUL, which ends C texts, is shown as \0.
func wordsOf(err error) (text string, told bool) {
	libdist, ok := err.(*Error)
	switch {
	case !ok:
		text = err.Error()
	case libdist.told != "":
		return libdist.told, true
	default:
		text = libdist.Message
	}
	return strings.ReplaceAll(text, "\x00", `\0`), false
}

// tell passes the text of an error to libdist, on the thread whose callback failed, and returns its status.
func tell(err error) int {
	code := int32Of(int(codeOf(err)))
	text, told := wordsOf(err)
	if told {
		return cdist.Fail_as_told(code, text)
	}
	return cdist.Fail(code, text)
}
