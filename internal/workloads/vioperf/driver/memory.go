package vioperf

import "unsafe"

// address is where a slice lies.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
