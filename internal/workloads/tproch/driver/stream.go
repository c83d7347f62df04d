package tproch

// modulus and multiplier are those of the Lehmer generator that the data are drawn with.
const (
	modulus    = 1<<31 - 1
	multiplier = 16807
)

// Streams of random numbers, one for each column that is drawn; the numbers are their places in seeds.
const (
	partMaker = iota
	partBrand
	partType
	partSize
	partContainer
	textStream
	partComment
	supplyQuantity
	supplyCost
	supplyComment
	_
	orderClerk
	orderComment
	orderDate
	lineQuantity
	lineDiscount
	lineTax
	lineInstruction
	lineMode
	linePart
	lineSupplier
	lineShipped
	lineCommitted
	lineReceived
	lineReturned
	lineComment
	customerAddress
	customerNation
	customerPhone
	customerBalance
	customerSegment
	customerComment
	supplierAddress
	supplierNation
	supplierPhone
	supplierBalance
	supplierComment
	partName
	orderPriority
	_
	orderCustomer
	nationComment
	regionComment
	orderLines
	supplierNoise
	supplierKind
	supplierPress
	supplierOffset
	streams
)

// seeds are where the streams begin, and how many numbers of each belong to a row whether it needs them or not: so
// rows can be made from any one on.
var seeds = [streams]struct{ start, perRow uint64 }{
	{1, 1}, {46831694, 1}, {1841581359, 1}, {1193163244, 1}, {727633698, 1}, {933588178, 1}, {804159733, 2},
	{1671059989, 4}, {1051288424, 4}, {1961692154, 8}, {1227283347, 1}, {1171034773, 1}, {276090261, 2},
	{1066728069, 1}, {209208115, 7}, {554590007, 7}, {721958466, 7}, {1371272478, 7}, {675466456, 7},
	{1808217256, 7}, {2095021727, 7}, {1769349045, 7}, {904914315, 7}, {373135028, 7}, {717419739, 7},
	{1095462486, 14}, {881155353, 9}, {1489529863, 1}, {1521138112, 3}, {298370230, 1}, {1140279430, 1},
	{1335826707, 2}, {706178559, 9}, {110356601, 1}, {884434366, 3}, {962338209, 1}, {1341315363, 2},
	{709314158, 92}, {591449447, 1}, {431918286, 1}, {851767375, 1}, {606179079, 2}, {1500869201, 2},
	{1434868289, 1}, {263032577, 1}, {753643799, 1}, {202794285, 1}, {715851524, 1},
}

// stream is a sequence of random numbers.
type stream struct {
	value uint64
	used  uint64 // of this row
}

func newStream(column int) stream { return stream{value: seeds[column].start} }

func times(a, b uint64) uint64 {
	x := a * b
	x = x&modulus + x>>31
	if x >= modulus {
		x = x&modulus + x>>31
	}
	if x == modulus {
		return 0
	}
	return x
}

// upTo draws a whole number from 0 up to, not including, n.
func (s *stream) upTo(n int) int {
	s.used++
	s.value = times(s.value, multiplier)
	return int(float64(s.value) / modulus * float64(n))
}

// between draws a whole number of a range, both ends of which belong to it.
func (s *stream) between(low, high int) int { return low + s.upTo(high-low+1) }

// power is the multiplier to the power of n.
func power(n uint64) uint64 {
	result, base := uint64(1), uint64(multiplier)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = times(result, base)
		}
		base = times(base, base)
	}
	return result
}

// dice are the streams of one kind of row.
type dice struct {
	all     [streams]stream
	columns []int // the streams that rows of this kind draw from
}

// newDice places the streams of rows before the row of an index, which counts from 0.
func newDice(index int64, columns ...int) *dice {
	d := &dice{columns: columns}
	for _, c := range columns {
		d.all[c].value = times(seeds[c].start, power(uint64(index)*seeds[c].perRow))
	}
	return d
}

// skips are the multiplier's powers: as many as a row may leave unused.
var skips = func() (s [93]uint64) {
	for i := range s {
		s[i] = power(uint64(i))
	}
	return s
}()

// next ends a row: every stream goes on to where the next one begins.
func (d *dice) next() {
	for _, c := range d.columns {
		s := &d.all[c]
		if left := seeds[c].perRow - s.used; left > 0 {
			s.value = times(s.value, skips[left])
		}
		s.used = 0
	}
}
