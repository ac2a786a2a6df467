// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"time"

	"libdist.example/dist/internal/infoprogram"
)

// infoTimeout is more than the checks of dist-info take together.
const infoTimeout = 120 * time.Second

// InfoReport is what [Info] and [CheckInfo] return.
type InfoReport struct {
	// JSON is the object that dist-info prints with --json. Unmarshal the keys that you need; the section "dist-info"
	// of capi/tools/README.md describes them.
	JSON json.RawMessage
	// OK reports whether the check has found no problem. It is true if nothing was checked.
	OK bool
}

// Info returns what libdist finds on this machine. It starts the program dist-info, and returns [ErrNotFound] if that
// is neither beside the library of this process nor in PATH.
func Info(ctx context.Context) (InfoReport, error) {
	return readInfo(ctx, "--json")
}

// CheckInfo is like [Info], and checks whether a job can run in this environment. The key "check" of the JSON object has
// the findings, which include a trial with two processes.
func CheckInfo(ctx context.Context) (InfoReport, error) {
	return readInfo(ctx, "--json", "--check")
}

func readInfo(ctx context.Context, arguments ...string) (InfoReport, error) {
	path, environment, err := infoprogram.Find()
	if err != nil {
		return InfoReport{}, newError(ErrNotFound, "%v", err)
	}
	limited, cancel := context.WithTimeout(contextOr(ctx), infoTimeout)
	defer cancel()
	command := exec.CommandContext(limited, path, arguments...)
	command.Env = environment
	command.WaitDelay = time.Second // for processes of the trial that still have its pipes
	var out, told bytes.Buffer
	command.Stdout, command.Stderr = &out, &told
	err = command.Run()
	if err != nil && limited.Err() != nil {
		killed := newError(codeOf(limited.Err()), "%s was killed because the context ended, or because it took more than %v", path, infoTimeout)
		killed.cause = why(limited)
		return InfoReport{}, killed
	}
	var exit *exec.ExitError
	problem := errors.As(err, &exit) && exit.ExitCode() == 1
	if (err != nil && !problem) || out.Len() == 0 {
		return InfoReport{}, newError(ErrFailedPrecondition, "%s failed: %v: %s", path, err, bytes.TrimSpace(told.Bytes()))
	}
	return InfoReport{JSON: out.Bytes(), OK: !problem}, nil
}
