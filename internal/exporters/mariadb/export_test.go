package mariadb

import "context"

// Ask runs a statement as the collector would.
func (c *Collector) Ask(ctx context.Context, query string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.connected(ctx); err != nil {
		return err
	}
	_, err := c.rows(ctx, query)
	return err
}
