// SPDX-License-Identifier: Apache-2.0

//go:build !race

package dist

// raceDetector reports whether this is a build for Go's race detector.
const raceDetector = false
