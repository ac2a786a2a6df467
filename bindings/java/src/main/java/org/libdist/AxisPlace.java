// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * The position of a logical device along an axis.
 *
 * @param index the position
 * @param size the size of the axis
 */
public record AxisPlace(int index, int size) {}
