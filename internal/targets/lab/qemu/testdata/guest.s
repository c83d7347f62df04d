# The guest of the tests: it counts in sector 1 of the disk it boots from, and prints a dot for each, E for an error.
# as --32 -o g.o guest.s && ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o guest.bin g.o
.code16
.globl _start
_start:
 ljmp $0,$go
go: xor %ax,%ax
 mov %ax,%ds
 mov %ax,%es
 mov %ax,%ss
 mov $0x7c00,%sp
 mov %dl,drive
 sti
again:
 incl 0x8000
 mov $dap,%si
 mov $0x4300,%ax
 mov drive,%dl
 int $0x13
 mov $'.',%al
 jnc say
 mov $'E',%al
say: mov $0x3f8,%dx
 out %al,%dx
 mov $0x8600,%ax
 xor %cx,%cx
 mov $20000,%dx
 int $0x15
 jmp again
drive: .byte 0
dap: .byte 16,0
 .word 1
 .word 0x8000,0
 .quad 1
.org 510
.word 0xaa55
