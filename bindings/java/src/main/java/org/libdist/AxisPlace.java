// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Where along an axis a logical device is.
 *
 * @param index its place
 * @param size how many places there are
 */
public record AxisPlace(int index, int size) {}
