// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

import org.libdist.internal.DistModule;

/** The implementation that reduces values outside runs (TensorFlow: CrossDeviceOps). */
public enum CrossDeviceKind {
    /** The strategy's own. */
    DEFAULT(0x1000),
    /** On one device, optionally with an operator of your own. */
    REDUCTION_TO_ONE_DEVICE(0x1001),
    /** Functions of your own. */
    HOST(0x1002);

    final int code;

    CrossDeviceKind(int code) {
        this.code = code;
    }

    static CrossDeviceKind of(int code) {
        return switch (code) {
            case 0x1000 -> DEFAULT;
            case 0x1001 -> REDUCTION_TO_ONE_DEVICE;
            case 0x1002 -> HOST;
            default -> throw new DistException(Status.INTERNAL, "CrossDeviceKind: libdist gave " + code);
        };
    }

    /** Returns TensorFlow's name of this constant; null if it has none. */
    public String tfName() {
        return Texts.of(DistModule.dist_enum_name(DistModule.DIST_ENUM_CROSS_DEVICE, code));
    }

    /**
     * Converts TensorFlow's name. Upper and lower case are equal. Use it for settings from files and command lines.
     *
     * @throws DistException INVALID_ARGUMENT if the name is unknown; the message lists the known names
     */
    public static CrossDeviceKind fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_enum_from_name(DistModule.DIST_ENUM_CROSS_DEVICE, Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
