// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"libdist.example/dist"
)

// onlyProgram lets PATH have only this dist-info; none if the text is empty. It returns its path.
func onlyProgram(t *testing.T, text string) string {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	path := filepath.Join(folder, "dist-info")
	if text != "" {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestInfoDescribesTheLibrary(t *testing.T) {
	info := must[dist.InfoReport](t)(dist.Info(background))
	var report struct {
		Version, Library string
		Check            any
	}
	if err := json.Unmarshal(info.JSON, &report); err != nil {
		t.Fatal(err)
	}
	version := dist.Version()
	if want := fmt.Sprintf("%d.%d.%d", version/10000, version/100%100, version%100); report.Version != want {
		t.Errorf("the version is %s, not %s", report.Version, want)
	}
	if !info.OK || report.Check != nil || !strings.Contains(report.Library, "/libdist.so") {
		t.Errorf("%+v", report)
	}
}

func TestCheckInfoFindsAProblem(t *testing.T) {
	t.Setenv("TF_CONFIG", "{")
	info := must[dist.InfoReport](t)(dist.CheckInfo(background))
	var report struct {
		Check struct {
			OK       bool
			Findings []struct{ Outcome, Subject, Text string }
		}
	}
	if err := json.Unmarshal(info.JSON, &report); err != nil {
		t.Fatal(err)
	}
	if info.OK || report.Check.OK {
		t.Error("the check found no problem")
	}
	for _, finding := range report.Check.Findings {
		if finding.Outcome == "problem" && strings.Contains(finding.Text, "TF_CONFIG") {
			return
		}
	}
	t.Errorf("no problem is about TF_CONFIG: %+v", report.Check.Findings)
}

func TestInfoWithoutTheProgram(t *testing.T) {
	folder := filepath.Dir(onlyProgram(t, ""))
	_, err := dist.Info(background)
	if !errors.Is(err, dist.ErrNotFound) {
		t.Fatal(err)
	}
	for _, word := range []string{"beside the library", "/bin,", folder, "Install the programs"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
}

func TestInfoWhenTheProgramFails(t *testing.T) {
	path := onlyProgram(t, "#!/bin/sh\necho 'no library' >&2\nexit 127\n")
	_, err := dist.Info(background)
	if !errors.Is(err, dist.ErrFailedPrecondition) || !strings.Contains(err.Error(), path+" failed: exit status 127: no library") {
		t.Error(err)
	}
	onlyProgram(t, "#!/nonexistent\n")
	if _, err := dist.Info(background); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
}

func TestInfoEndsWithItsContext(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "started")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	onlyProgram(t, "#!/bin/sh\necho started >"+pipe+"\nexec /usr/bin/tail -f /dev/null\n")
	ctx, cancel := context.WithCancelCause(background)
	reason := errors.New("no longer needed")
	go func() {
		_, _ = os.ReadFile(pipe) // returns when the program runs
		cancel(reason)
	}()
	if _, err := dist.Info(ctx); !errors.Is(err, dist.ErrCancelled) || !errors.Is(err, reason) {
		t.Error(err)
	}
}
