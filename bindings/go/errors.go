// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"libdist.example/dist/internal/cdist"
)

// Code says what kind of failure an error is. Every code is an error itself, to compare with by errors.Is.
type Code int

// The codes, with the numbers of libdist, Abseil and gRPC.
const (
	ErrCancelled          Code = 1
	ErrUnknown            Code = 2
	ErrInvalidArgument    Code = 3
	ErrDeadlineExceeded   Code = 4
	ErrNotFound           Code = 5
	ErrAlreadyExists      Code = 6
	ErrPermissionDenied   Code = 7
	ErrResourceExhausted  Code = 8
	ErrFailedPrecondition Code = 9
	ErrAborted            Code = 10
	ErrOutOfRange         Code = 11
	ErrUnimplemented      Code = 12
	ErrInternal           Code = 13
	ErrUnavailable        Code = 14
	ErrDataLoss           Code = 15
)

// String is the code as libdist spells it: "INVALID_ARGUMENT".
func (c Code) String() string { return cdist.StatusName(int(c)) }

// Error makes a code an error.
func (c Code) Error() string { return "dist: " + c.String() }

// Collective says which collective an error speaks of.
type Collective int

// The collectives, and the end of the replica function, where all meet too.
const (
	CollectiveNone      Collective = 0
	CollectiveAllReduce Collective = 1
	CollectiveBroadcast Collective = 2
	CollectiveBarrier   Collective = 3
	CollectiveMergeCall Collective = 4
	CollectiveReturn    Collective = 5
)

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

	told  bool // by libdist's core, not by this package
	cause error
}

// Error is the message behind the code's name.
func (e *Error) Error() string { return "dist: " + e.Code.String() + ": " + e.Message }

// Is makes errors.Is(err, ErrAborted) true for every error with that code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap gives the context's error where a context ended the run.
func (e *Error) Unwrap() error { return e.cause }

// PanicError is what Run returns when a replica function panicked.
type PanicError struct {
	Replica int
	Value   any    // what panic was called with
	Stack   []byte // of the replica, at the panic
}

// Error names the replica and the panic's value; the stack is in its field.
func (p *PanicError) Error() string {
	return fmt.Sprintf("dist: panic in replica %d: %v", p.Replica, p.Value)
}

// Unwrap gives the panic's value where that is an error, as a runtime.Error is.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

func newError(code Code, message string) *Error {
	return &Error{Code: code, Message: message, Replica: -1}
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
		Message:    field[6],
		Tag:        field[7],
		Expected:   field[8],
		Received:   field[9],
		Hint:       field[10],
		told:       true,
	}
}

// codeOf is the status by which libdist learns of an error that a replica function returned.
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
	}
	if code == 0 {
		code = ErrUnknown
	}
	return code
}
