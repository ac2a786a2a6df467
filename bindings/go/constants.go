// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"math"
	"strings"
	"time"

	"libdist.example/dist/internal/cdist"
)

// Choice is a boolean option that can also be left to libdist. The zero value is [DefaultChoice].
type Choice int

// The values of a Choice.
const (
	DefaultChoice Choice = 0 // libdist's default
	Yes           Choice = 1
	No            Choice = 2
)

// native returns the number that C uses: 1, 0 or -1. Other numbers are passed on, and libdist rejects them.
func (c Choice) native() int {
	if c == No {
		return -1
	}
	return int32Of(int(c))
}

// NoTimeout disables a timeout, in options whose value 0 selects a default.
const NoTimeout time.Duration = -1

// Version returns the version of the loaded library: major * 10000 + minor * 100 + patch.
func Version() int { return cdist.Dist_version() }

// HasFeature reports whether this process can use an optional feature: "numa", "pinning", "isal", "grpc" or
// "gloo". For "grpc" and "gloo" it loads a library, which stays in the process.
func HasFeature(name string) bool { return checkText(name) == nil && cdist.Dist_has_feature(name) != 0 }

// CanonicalDevice returns the full form of a device name. Parts that name omits are taken from the full name
// of CPU:0.
func CanonicalDevice(name string) (string, error) {
	if err := checkText(name); err != nil {
		return "", err
	}
	return textOf(func(room []byte) error { return cdist.Dist_canonical_device(name, room, int64(len(room))) })
}

// checkText rejects a text that contains a NUL, because C would see a different text. All texts of the
// program go through it, except those of errors, which can come from anywhere; see wordsOf.
func checkText(text string) error {
	if strings.IndexByte(text, 0) >= 0 {
		return newError(ErrInvalidArgument, "a text has a NUL inside: %.40q", text)
	}
	return nil
}

// textOf provides room for a text with a terminating NUL and returns the text.
func textOf(write func(room []byte) error) (string, error) {
	return textIn(make([]byte, 256), write)
}

// textIn is textOf with room of another size.
func textIn(room []byte, write func(room []byte) error) (string, error) {
	if err := write(room); err != nil {
		return "", fromNative(err)
	}
	for i, b := range room {
		if b == 0 {
			return string(room[:i]), nil
		}
	}
	return string(room), nil
}

// int32Of converts a number to a value out of range if C would truncate it, so that libdist rejects it.
func int32Of(n int) int {
	return min(max(n, math.MinInt32), math.MaxInt32)
}

// checkInt32 rejects a number that does not fit into 32 bits. All numbers of the program that are an int32 in
// C go through it. name is that of the field or argument.
func checkInt32(name string, n int) error {
	if n != int32Of(n) {
		return newError(ErrInvalidArgument, "%s is %d: 32 bits do not hold it", name, n)
	}
	return nil
}

func intOf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
