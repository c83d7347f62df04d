// Package thread runs functions on operating system threads of their own, for what Linux keeps by thread: namespaces,
// privileges, Landlock. It stands under the places that put processes behind walls or into networks. It gives threads
// nothing and takes nothing away itself.
package thread
