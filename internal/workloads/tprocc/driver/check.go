package tprocc

import (
	"errors"
	"fmt"
	"strings"
)

// conditions are TPC-C's conditions of consistency 1 to 4, each as a query for what breaks it: warehouse, district (0
// for all), and the two figures that differ.
var conditions = [4]string{
	`SELECT w_id, 0, w_ytd, total FROM tprocc.warehouse LEFT JOIN
 (SELECT d_w_id, sum(d_ytd) AS total FROM tprocc.district GROUP BY d_w_id) d ON d_w_id = w_id
 WHERE total IS NULL OR total <> w_ytd`,
	`SELECT d_w_id, d_id, d_next_o_id - 1, CASE WHEN last_no <> d_next_o_id - 1 THEN last_no ELSE last_o END
 FROM tprocc.district LEFT JOIN
 (SELECT o_w_id, o_d_id, max(o_id) AS last_o FROM tprocc.orders GROUP BY o_w_id, o_d_id) o
 ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN
 (SELECT no_w_id, no_d_id, max(no_o_id) AS last_no FROM tprocc.new_order GROUP BY no_w_id, no_d_id) n
 ON no_w_id = d_w_id AND no_d_id = d_id
 WHERE last_o IS NULL OR last_o <> d_next_o_id - 1 OR last_no <> d_next_o_id - 1`,
	`SELECT no_w_id, no_d_id, max(no_o_id) - min(no_o_id) + 1, count(*) FROM tprocc.new_order GROUP BY no_w_id, no_d_id
 HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)`,
	`SELECT coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id), total, line_count FROM
 (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS total FROM tprocc.orders GROUP BY o_w_id, o_d_id) o LEFT JOIN
 (SELECT ol_w_id, ol_d_id, count(*) AS line_count FROM tprocc.order_line GROUP BY ol_w_id, ol_d_id) l
 ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE line_count IS NULL OR total <> line_count`,
}

// what the conditions say must be equal.
var equal = [4][2]string{
	{"w_ytd", "the sum of d_ytd"},
	{"d_next_o_id - 1", "the greatest order or new order"},
	{"the range of new orders", "their number"},
	{"the sum of o_ol_cnt", "the number of order lines"},
}

// ErrInconsistent says that a condition of consistency does not hold.
var ErrInconsistent = errors.New("the data are not consistent")

// Check holds the data against the conditions and gives the number of places where they do not hold. The error wraps
// ErrInconsistent then and names some of them.
func Check(d Dialect, s Session) (broken int, err error) {
	var said []string
	for i, query := range conditions {
		rows, err := s.Rows(name(d, query))
		if err != nil {
			return broken, fmt.Errorf("consistency condition %d: %w", i+1, err)
		}
		broken += len(rows)
		for _, r := range rows[:min(3, len(rows))] {
			said = append(said, fmt.Sprintf("condition %d, warehouse %s, district %s: %s is %s, %s is %s", i+1, r[0], r[1],
				equal[i][0], r[2], equal[i][1], orNone(r[3])))
		}
	}
	if broken > 0 {
		return broken, fmt.Errorf("%w in %d places: %s", ErrInconsistent, broken, strings.Join(said, "; "))
	}
	return 0, nil
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
