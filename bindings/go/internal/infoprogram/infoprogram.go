// SPDX-License-Identifier: Apache-2.0

// Package infoprogram finds the program dist-info.
package infoprogram

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	name      = "dist-info"
	libraries = "LD_LIBRARY_PATH"
)

// Find returns the path of dist-info, and an environment in which it loads the library of this process. It looks
// beside that library, if the process has loaded one, and in PATH.
func Find() (string, []string, error) {
	environment := os.Environ()
	places := "this process has not loaded libdist.so,"
	if library := loaded(); library != "" {
		folder := filepath.Dir(library)
		installed := filepath.Join(filepath.Dir(folder), "bin")
		environment = slices.DeleteFunc(environment, func(each string) bool { return strings.HasPrefix(each, libraries+"=") })
		setting := libraries + "=" + folder
		if old := os.Getenv(libraries); old != "" {
			setting += ":" + old
		}
		environment = append(environment, setting)
		for _, each := range []string{folder, installed} {
			if path, err := exec.LookPath(filepath.Join(each, name)); err == nil {
				return path, environment, nil
			}
		}
		places = fmt.Sprintf("it is not in %s, beside the library of this process, not in %s,", folder, installed)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", nil, fmt.Errorf("the program dist-info was not found: %s and the search of PATH (%q) failed: %w. Install the "+
			"programs of libdist, or add the folder that contains dist-info to PATH", places, os.Getenv("PATH"), err)
	}
	return path, environment, nil
}

// loaded returns the file of libdist.so; "" if libdist is linked into the program.
func loaded() string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(maps)) {
		if at := strings.IndexByte(line, '/'); at >= 0 && strings.HasPrefix(filepath.Base(line), "libdist.so") {
			return strings.TrimSpace(line[at:])
		}
	}
	return ""
}
