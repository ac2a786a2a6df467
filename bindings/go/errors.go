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

// String is the code as libdist spells it: "INVALID_ARGUMENT".
func (c Code) String() string { return cdist.Dist_status_name(int32Of(int(c))) }

// Error makes a code an error.
func (c Code) Error() string { return "dist: " + c.String() }

// Error is a failure that libdist reports, in words and as fields.
type Error struct {
	Code       Code
	Message    string     // what was wrong, what was expected, what to do
	Worker     int        // the culprit's process; 0 where there is one
	Replica    int        // the culprit's id; -1: no replica is to blame
	Collective Collective // where it was noticed
	Group      int        // which group of replicas met; 0: all
	Sequence   int64      // the collective's number in this run, from 1; 0: outside a collective
	Tag        string     // of the collective
	Expected   string     // what the majority, or the lowest id, asked for
	Received   string     // what the culprit asked for, or that it left or did not come
	Hint       string     // what to try
	// LogicalDevice is the culprit's in its replica; -1: the replica as a whole.
	LogicalDevice int

	told  string // the message as libdist's core worded it; "": this package did
	cause error
}

// Error is the message behind the code's name, then the cause, then the hint unless the message has it already.
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

// Is makes errors.Is(err, ErrAborted) true for every error with that code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap gives the context's error and its cause where a context ended the run.
func (e *Error) Unwrap() error { return e.cause }

// PanicError is what becomes of a panic in a function of the program's that libdist called.
type PanicError struct {
	Replica int    // whose function it was, or whose device's; -1: no replica's
	Value   any    // what panic was called with
	Stack   []byte // at the panic
	// LogicalDevice is the one of the replica's whose function it was; -1: the replica's own.
	LogicalDevice int
}

// Error names the replica and the panic's value; the stack is in its field.
func (p *PanicError) Error() string {
	if p.Replica < 0 {
		return fmt.Sprintf("dist: panic: %v", p.Value)
	}
	if p.LogicalDevice >= 0 {
		return fmt.Sprintf("dist: panic in replica %d, logical device %d: %v", p.Replica, p.LogicalDevice, p.Value)
	}
	return fmt.Sprintf("dist: panic in replica %d: %v", p.Replica, p.Value)
}

// Unwrap gives the panic's value where that is an error, as a runtime.Error is.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Errorf is an error with a code, for a function of the program's to return: libdist passes the code and the text on to
// the replica's peers. Other errors count as ErrUnknown, context.Canceled, context.DeadlineExceeded and io.EOF as
// ErrCancelled, ErrDeadlineExceeded and ErrOutOfRange.
func Errorf(code Code, format string, arguments ...any) error {
	return newError(code, format, arguments...)
}

func newError(code Code, format string, arguments ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, arguments...), Replica: -1, LogicalDevice: -1}
}

// fromNative turns what the generated layer returns into an *Error.
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
		Message:    inGo(field[6]),
		Tag:        field[7],
		Expected:   inGo(field[8]),
		Received:   inGo(field[9]),
		Hint:       inGo(field[10]),
		told:       field[6],

		LogicalDevice: int(number(11)),
	}
}

// codeOf is the status by which libdist learns of an error that a function of the program's returned.
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

// wordsOf is what libdist is told, and tells peers, of an error: the core's own words where they were those. A NUL, where C's
// texts end, is shown, as \0.
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

// tell gives libdist the words of an error, on the thread whose function it ended, and returns its status.
func tell(err error) int {
	code := int32Of(int(codeOf(err)))
	text, told := wordsOf(err)
	if told {
		return cdist.Fail_as_told(code, text)
	}
	return cdist.Fail(code, text)
}
